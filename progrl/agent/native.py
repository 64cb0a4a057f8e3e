"""Kernels in C++, compiled for a model's shape and this processor as they are needed."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from progrl.errors import ConfigurationError

WIDE = 16
"""Numbers that kernels take at once; all widths of a model are to be multiples of it."""
_COMPILERS = ("g++", "clang++", "c++")


def find_compiler() -> str | None:
    """The C++ compiler that `CXX` names or the PATH has, if any."""
    return next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), *_COMPILERS))), None)


def require_compiler(key: str) -> str:
    """The compiler, which the key of the configuration needs.

    Raises:
        ConfigurationError: there is none.
    """
    compiler = find_compiler()
    if compiler is None:
        raise ConfigurationError(
            f"{key}: needs a C++ compiler, and there is no g++ or clang++ on the PATH. Install "
            f"one, or set {key}=false."
        )
    return compiler


def compiled(source: Path, key: str, shape: Mapping[str, int]) -> ctypes.CDLL:
    """The kernels of a source file for a shape, loaded.

    Args:
        key: of the configuration that asks for it, named in errors.
        shape: what the source leaves open, by name; all of it widths and numbers of heads.

    Raises:
        ConfigurationError: there is no compiler, it fails, or the widths do not fit.
    """
    odd = {name: n for name, n in shape.items() if not name.endswith("HEADS") and n % WIDE}
    if odd:
        told = ", ".join(f"{name.lower()} {width}" for name, width in odd.items())
        raise ConfigurationError(
            f"{key}: takes widths that are multiples of {WIDE}, and this model has {told}. Set "
            f"{key}=false."
        )
    compiler = require_compiler(key)
    flags = ["-O3", "-march=native", "-std=gnu++17", "-shared", "-fPIC", f"-I{_HEADERS}"]
    defined = [f"-D{name}={value}" for name, value in shape.items()]
    command = [compiler, *flags, *defined, str(source), "-o"]
    try:
        with TemporaryDirectory(prefix="progrl-kernel-") as folder:
            target = str(Path(folder) / "kernel.so")
            done = subprocess.run([*command, target], capture_output=True, text=True)
            if done.returncode == 0:
                return ctypes.CDLL(target)
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
    except OSError as error:  # no room, no compiler after all, a file that is no library
        said = str(error)
    raise ConfigurationError(
        f"{key}: {compiler} could not compile the kernel ({said}). Set {key}=false."
    )


_HEADERS = Path(__file__).parent
