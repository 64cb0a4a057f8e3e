"""Trajectories on disk: every end, the versions that are read, and those that are not."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from progrl.dialogue.trajectories import VERSION, End, read_trajectories, write_trajectories
from progrl.errors import DataError
from progrl.files import read_jsonl, write_jsonl
from tests.builders import make_trajectory


def written(folder: Path, ends: Iterable[End], version: Any = VERSION) -> Path:
    """One trajectory for each end, in records of a version."""
    path = folder / "some.jsonl"
    write_trajectories(path, [make_trajectory(end=end) for end in ends])
    records = [value for _, value in read_jsonl(path)]
    assert all(value["version"] == VERSION for value in records)
    write_jsonl(path, [{**value, "version": version} for value in records])
    return path


def test_every_end_comes_back(tmp_path: Path) -> None:
    assert read_trajectories(written(tmp_path, End)) == [make_trajectory(end=end) for end in End]


def test_success_is_not_what_was_cut() -> None:
    won = {end for end in End if make_trajectory(end=end).success}
    assert won == {End.CLOSED, End.LEFT, End.DONE}


def test_the_version_before_is_read(tmp_path: Path) -> None:
    known = [end for end in End if end is not End.WINDOW]
    read = read_trajectories(written(tmp_path, known, 2))
    assert read == [make_trajectory(end=end) for end in known]


@pytest.mark.parametrize("version", [1, 4, "3", None, [3], {"3": 3}])
def test_another_version_is_refused(version: Any, tmp_path: Path) -> None:
    path = written(tmp_path, [End.CLOSED], version)
    with pytest.raises(DataError, match=rf"some\.jsonl, line 1: .*version {VERSION}"):
        read_trajectories(path)
