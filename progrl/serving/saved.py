"""Games that their players chose to keep: trajectories, a pair of files each."""

import contextlib
import re
import secrets
from pathlib import Path

from progrl.dialogue.trajectories import Trajectory, write_trajectories
from progrl.errors import DataError

_NAME = re.compile(r"[0-9a-f]{32}")


def _pair(folder: Path, name: str) -> tuple[Path, Path]:
    records = folder / f"{name}.jsonl"
    return records, records.with_suffix(".safetensors")


def save(folder: Path, trajectory: Trajectory) -> str:
    """Write the game whole or not at all; the name that it can be deleted by, not to be guessed.

    Raises:
        DataError: it cannot be written.
    """
    name = secrets.token_hex(16)
    records, arrays = _pair(folder, name)
    try:
        write_trajectories(records, [trajectory])
    except DataError:
        with contextlib.suppress(OSError):
            arrays.unlink()
        raise
    return name


def saved(folder: Path) -> list[Path]:
    """The records of all games in the folder, sorted by name."""
    return sorted(path for path in folder.glob("*.jsonl") if _NAME.fullmatch(path.stem))


def delete(folder: Path, name: str) -> bool:
    """Delete a game for good; False where there is none of that name."""
    if not _NAME.fullmatch(name):
        return False
    found = [path for path in _pair(folder, name) if path.exists()]
    for path in found:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{path}: could not be deleted ({error.strerror}).") from error
    return bool(found)
