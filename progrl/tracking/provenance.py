"""The one record of where a result came from, the same wherever results are shown."""

import hashlib
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from progrl import __version__
from progrl.config import Config, resolved
from progrl.files import digest
from progrl.tracking.data import data_hash

DECIDING = (
    "progrl",
    "flows",
    "tasks",
    "configs",
    "params.yaml",
    "dvc.yaml",
    "pyproject.toml",
    "constraints.txt",
)
"""Sources, parameters and configurations: what decides results, and must be committed."""

PACKAGES = (
    "accelerate",
    "dvc",
    "mlflow",
    "numpy",
    "prefect",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
)

ROUNDING = ("numpy", "tokenizers", "torch", "transformers")


def provenance(project: Path, config: Config) -> dict[str, Any]:
    """Git commit, uncommitted changes, dvc.lock, seed, configuration and versions.

    Keys: `commit` (None outside of git), `dirty` (changed or new files among `DECIDING`), `diff`
    (a hash of those changes, None without any), `dvc_lock` (its DVC hash, None without one),
    `seed`, `configuration` (a hash of all of it), `versions` (of Python, progrl, packages).
    """
    commit = _git(project, "rev-parse", "HEAD")
    dirty = _dirty(project) if commit else []
    lock = project / "dvc.lock"
    return {
        "commit": commit.decode().strip() if commit else None,
        "dirty": dirty,
        "diff": _diff(project, dirty) if dirty else None,
        "dvc_lock": data_hash(lock) if lock.exists() else None,
        "seed": config.seed,
        "configuration": configuration_hash(config),
        "versions": _versions(),
    }


def machine() -> dict[str, str]:
    """The processor and the packages that rounding depends on: where all of them are the same, the
    same configuration and seed give the same bytes."""
    kept = {name: v for name, v in _versions().items() if name in ROUNDING}
    return {"processor": _processor(), **kept}


def _processor() -> str:
    """Name and numbers of the model, where Linux tells them."""
    path = Path("/proc/cpuinfo")
    linux = platform.system() == "Linux" and path.exists()
    told = path.read_text(encoding="utf-8").split("\n\n", 1)[0] if linux else ""
    rows = {
        name.strip(): value.strip()
        for name, _, value in (line.partition(":") for line in told.splitlines())
    }
    names = ("model name", "cpu family", "model", "stepping")
    known = " ".join(rows[name] for name in names if name in rows)
    return known or platform.processor() or platform.machine()


def configuration_hash(config: Config) -> str:
    """16 hex digits over all keys that may change a result: those of `tracking` do not."""
    tree = resolved(config)
    tree.pop("tracking")
    return digest(tree)[:16]


def _git(project: Path, *arguments: str) -> bytes | None:
    """What git says; None where it is missing or refuses."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=project, capture_output=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _dirty(project: Path) -> list[str]:
    """Changed, deleted and new files, relative to the project, sorted."""
    told = _git(project, "diff", "--name-only", "--relative", "-z", "HEAD", "--", *DECIDING)
    new = _git(project, "ls-files", "--others", "--exclude-standard", "-z", "--", *DECIDING)
    names = (told or b"").split(b"\0") + (new or b"").split(b"\0")
    return sorted({name.decode(errors="replace") for name in names if name})


def _diff(project: Path, dirty: Sequence[str]) -> str:
    total = hashlib.sha256()
    for name in dirty:
        path = project / name
        total.update(name.encode() + b"\0")
        total.update(path.read_bytes() if path.is_file() else b"deleted")
    return total.hexdigest()[:16]


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "progrl": __version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
