"""What DVC knows of files and stages; nothing else in the library knows of DVC."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def data_hash(path: Path) -> str:
    """The hash that dvc.lock has for a file or folder: MD5, with `.dir` behind a folder's.

    A folder's is the MD5 of the JSON list of its files' hashes and relative paths, as DVC 3 makes
    it, so that a run can be tied to the versioned data whether or not DVC started it.
    """
    if not path.is_dir():
        return _md5(path)
    names = sorted(f.relative_to(path).as_posix() for f in path.rglob("*") if f.is_file())
    entries = [{"md5": _md5(path / name), "relpath": name} for name in names]
    text = json.dumps(entries, sort_keys=True)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() + ".dir"


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def changed_stages(project: Path, names: Sequence[str]) -> list[str]:
    """Which of the stages DVC would run again, in the order given.

    All of them where the project is not under DVC, or DVC is not installed.
    """
    command = [sys.executable, "-m", "dvc", "status", "--json", *names]
    try:
        done = subprocess.run(command, cwd=project, capture_output=True, timeout=300, check=True)
        changed = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return list(names)
    return [name for name in names if name in changed]
