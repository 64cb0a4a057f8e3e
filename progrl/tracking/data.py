"""The hashes by which DVC knows files and folders."""

import hashlib
import json
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
