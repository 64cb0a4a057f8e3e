"""Files that are whole or not there: atomic writing, careful reading, content hashes."""

import contextlib
import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from progrl.errors import BusyError, DataError


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, or of a folder's file names and contents in sorted order."""
    total = hashlib.sha256()
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        total.update(file.relative_to(path).as_posix().encode())
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError) as error:
        if isinstance(error, SafetensorError) and "I/O error" not in str(error):
            raise  # not the disk's fault
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{path}: could not be written ({reason}); "
            "nothing was changed there. Free space or permissions, then run the command again."
        ) from error


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Fill a temporary file that takes `path`'s place only when the block ends well."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        try:
            yield Path(name)
            with Path(name).open("rb+") as stream:
                os.fsync(stream.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write beside `path`, flush to disk, and rename; on failure the old file stays as it was."""
    with new_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, content.encode())


def write_json(path: Path, value: Any) -> None:
    """Readable JSON, ending in a newline; keys in the order given."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_jsonl(path: Path, rows: Iterable[Any]) -> None:
    """JSON Lines, one canonical record a line."""
    write_text(path, "".join(canonical(row) + "\n" for row in rows))


def _restore(path: Path) -> None:
    """Bring back a folder that was moved aside for another that then did not come."""
    aside = sorted(path.parent.glob(f".{glob.escape(path.name)}.????????.old"))
    if aside and not path.exists():
        os.replace(aside[-1], path)


def remove_leftovers(path: Path) -> None:
    """Remove what a killed process left of unfinished writes of `path`, and inside it.

    For the one process that may write there: another's unfinished file would go too.
    """
    _restore(path)
    left = list(path.parent.glob(f".{glob.escape(path.name)}.????????*"))
    left += path.rglob(".*.????????") if path.is_dir() else []
    for each in left:
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder that takes `path`'s place only when the block ends well."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _restore(path)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        try:
            yield temporary
            os.chmod(temporary, 0o755)
            old = temporary.with_name(temporary.name + ".old")
            if path.exists():
                os.replace(path, old)
            os.replace(temporary, path)
            shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            _restore(path)
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Run the stage that writes it first.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from None


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        DataError: the file is missing or is not JSON; the message names file and line.
    """
    try:
        return json.loads(_read(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not valid JSON ({error.msg}).") from None
    except RecursionError:
        raise DataError(f"{path}: no JSON of ours, for it is nested too deeply.") from None


def read_jsonl(path: Path) -> Iterator[tuple[int, Any]]:
    """Line number and value of each line.

    Raises:
        DataError: the file is missing or a line is not JSON; the message names file and line.
    """
    # Not splitlines: a string may hold U+0085 or U+2028, which end no line of JSON Lines.
    for number, line in enumerate(_read(path).split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(
                    f"{path}, line {number}: not valid JSON ({error.msg}). "
                    "Mend or remove the line, or run the stage that writes the file again."
                ) from None
            except RecursionError:
                raise DataError(
                    f"{path}, line {number}: no JSON of ours, for it is nested too deeply."
                ) from None


@contextlib.contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path` while the block runs; the lock goes with the process.

    Raises:
        BusyError: another process holds it.
        DataError: it cannot be made.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0)
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise BusyError(
                f"{what} is already running (lock {path}). Wait for it to end, or stop it first."
            ) from None
    try:
        yield
    finally:
        lock.release()
