"""Files that are whole or not there, whatever happens meanwhile."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl import files
from progrl.errors import BusyError, DataError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writing_makes_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    files.write_json(path, {"x": 1})
    files.write_json(path, {"x": 2})
    assert files.read_json(path) == {"x": 2}
    assert _names(path.parent) == ["b.json"]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics.json"
    files.write_text(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(DataError, match=r"metrics\.json: could not be written \(No space left"):
        files.write_text(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert _names(tmp_path) == ["metrics.json"]


def test_a_limit_of_the_system_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(b"old")
    code = f"""
import resource, signal
from pathlib import Path
from progrl.files import write_bytes
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
write_bytes(Path({str(path)!r}), b"x" * 10_000)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "DataError" in done.stderr
    assert path.read_bytes() == b"old"
    assert _names(tmp_path) == ["big.bin"]


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="file/x: could not be written"):
        files.write_text(tmp_path / "file" / "x", "text")


def test_a_new_folder_takes_the_place_of_the_old(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for content in ("one", "two"):
        with files.new_folder(target) as folder:
            (folder / content).write_text(content)
    assert _names(target) == ["two"]
    assert _names(tmp_path) == ["model"]
    assert target.stat().st_mode & 0o777 == 0o755


def test_a_failure_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with files.new_folder(target) as folder:
        (folder / "weights").write_text("old")
    with pytest.raises(ZeroDivisionError), files.new_folder(target) as folder:
        (folder / "weights").write_text("half")
        raise ZeroDivisionError
    assert (target / "weights").read_text() == "old"
    assert _names(tmp_path) == ["model"]


def test_a_full_disk_between_the_two_renames_restores_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    with files.new_folder(target) as folder:
        (folder / "weights").write_text("old")
    real, calls = os.replace, 0

    def second_fails(source: Path, destination: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, destination)

    monkeypatch.setattr(os, "replace", second_fails)
    with pytest.raises(DataError, match="model"), files.new_folder(target) as folder:
        (folder / "weights").write_text("new")
    assert (target / "weights").read_text() == "old"
    assert _names(tmp_path) == ["model"]


def test_a_killed_process_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with files.new_folder(target) as folder:
        (folder / "weights").write_text("old")
    code = f"""
import time
from pathlib import Path
from progrl.files import new_folder
with new_folder(Path({str(target)!r})) as folder:
    (folder / "weights").write_text("half")
    Path({str(tmp_path / "ready")!r}).touch()
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 30
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (target / "weights").read_text() == "old"
    with files.new_folder(target) as folder:
        (folder / "weights").write_text("new")
    assert (target / "weights").read_text() == "new"


def test_a_process_killed_between_the_two_renames_loses_nothing(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with files.new_folder(target) as folder:
        (folder / "weights").write_text("old")
    code = f"""
import os, signal
from pathlib import Path
from progrl.files import new_folder
real = os.replace
def replace(source, destination):
    real(source, destination)
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = replace
with new_folder(Path({str(target)!r})) as folder:
    (folder / "weights").write_text("new")
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert not target.exists()
    with pytest.raises(ZeroDivisionError), files.new_folder(target):
        assert (target / "weights").read_text() == "old"
        raise ZeroDivisionError
    assert (target / "weights").read_text() == "old"


def test_json_lines_have_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    assert list(files.read_jsonl(path)) == [(1, {"a": 1}), (3, {"a": 2})]


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(DataError, match=r"rows\.jsonl, line 2: not valid JSON"):
        list(files.read_jsonl(path))


def test_a_broken_json_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "evaluate.json"
    path.write_text('{\n  "a": 1,\n  "b"\n}')
    with pytest.raises(DataError, match=r"evaluate\.json, line 4"):
        files.read_json(path)


def test_what_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        files.read_json(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read"):
        files.read_json(tmp_path / "bytes.json")


@given(JSON)
def test_json_lines_come_back(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    files.write_jsonl(path, [value, value])
    assert [row for _, row in files.read_jsonl(path)] == [value, value]


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=4))
def test_digests_ignore_the_order_of_keys(value: dict[str, int]) -> None:
    assert files.digest(value) == files.digest(dict(reversed(value.items())))


def test_a_folder_digest_sees_names_and_contents(tmp_path: Path) -> None:
    seen = set()
    for name, content in (("a", "1"), ("b", "1"), ("a", "2")):
        folder = tmp_path / f"{name}{content}"
        folder.mkdir()
        (folder / name).write_text(content)
        seen.add(files.file_digest(folder))
    assert len(seen) == 3


def test_only_one_holds_a_lock(tmp_path: Path) -> None:
    lock = tmp_path / "grpo.lock"
    code = f"""
from pathlib import Path
from progrl.files import exclusive
with exclusive(Path({str(lock)!r}), "Stage grpo"):
    pass
"""
    with files.exclusive(lock, "Stage grpo"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "BusyError: Stage grpo is already running" in done.stderr.replace(
            "progrl.errors.", ""
        )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_lock_goes_with_its_process(tmp_path: Path) -> None:
    lock = tmp_path / "grpo.lock"
    code = f"""
import os, signal
from pathlib import Path
from progrl.files import exclusive
with exclusive(Path({str(lock)!r}), "Stage grpo"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code])
    assert killed.returncode == -signal.SIGKILL
    with (
        files.exclusive(lock, "Stage grpo"),
        pytest.raises(BusyError),
        files.exclusive(lock, "Stage grpo"),
    ):
        pass


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    """A writer is killed within its write: a file, a folder, a file in the folder."""
    code = """
import os, sys
from pathlib import Path
from progrl import files
root = Path(sys.argv[1])
(root / "tasks").mkdir()
(root / "tasks" / "a.jsonl").write_text("kept")
(root / "other.json").write_text("kept")
if not os.fork():
    os.fsync = lambda _: os._exit(9)
    files.write_text(root / "tasks" / "a.jsonl", "half")
os.wait()
with files.new_folder(root / "tasks") as folder:
    (folder / "b.jsonl").write_text("half")
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == 9
    hidden = [p for p in tmp_path.rglob("*") if any(q.startswith(".") for q in p.parts)]
    assert len(hidden) == 3
    files.remove_leftovers(tmp_path / "tasks")
    left = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*"))
    assert left == ["other.json", "tasks", "tasks/a.jsonl"]
    assert (tmp_path / "tasks" / "a.jsonl").read_text() == "kept"


def test_what_is_nested_too_deeply_is_no_json_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000)
    with pytest.raises(DataError, match="nested too deeply"):
        files.read_json(path)
    with pytest.raises(DataError, match=r"line 1.*nested too deeply"):
        list(files.read_jsonl(path))
