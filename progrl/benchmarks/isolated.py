"""Packages that are installed without their dependencies, each benchmark's in a folder of its own.

The folder belongs to the Python environment but is no site-packages: `pip check` sees nothing of
it, and nothing in it is imported before its benchmark is opened.
"""

import importlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from progrl.errors import DataError
from progrl.files import new_folder

SECONDS = 600


def folder_of(name: str) -> Path:
    """Where the packages of benchmark `name` live."""
    return Path(sys.prefix) / "share" / "progrl" / "benchmarks" / name


def importable(name: str, module: str) -> bool:
    """Whether `module` lies in the folder of benchmark `name`."""
    importlib.invalidate_caches()
    return PathFinder.find_spec(module, [str(folder_of(name))]) is not None


def enable(name: str) -> None:
    """Make the packages of benchmark `name` importable, after all others."""
    folder = str(folder_of(name))
    if folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()


def line(name: str, requirements: Sequence[str], folder: Path | None = None) -> list[str]:
    """The command that installs `requirements`, without what they depend on."""
    target = ["--target", str(folder or folder_of(name))]
    return [sys.executable, "-m", "pip", "install", "-q", "--no-deps", *target, *requirements]


def install(name: str, requirements: Sequence[str]) -> Path:
    """Install `requirements` for benchmark `name`, whole or not at all; the folder.

    Raises:
        DataError: pip failed, or took too long; its last line is in the message.
    """
    target = folder_of(name)
    with new_folder(target) as fresh:
        try:
            done = subprocess.run(
                line(name, requirements, fresh), capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise DataError(f"{target}: pip did not end within {SECONDS} s.") from None
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise DataError(f"{target}: pip could not install {', '.join(requirements)} ({said}).")
    return target


def remove(name: str) -> None:
    """Remove what `install` has written."""
    shutil.rmtree(folder_of(name), ignore_errors=True)
