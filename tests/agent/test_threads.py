"""Threads by measurement: what is chosen, and that a stage stays with it."""

from pathlib import Path

import pytest
import torch

from progrl.agent import threads
from progrl.agent.shape import shape_of
from progrl.agent.threads import counts, fewest_near_best, measure, settled, threads_of
from progrl.config import Config, load_config
from progrl.errors import ConfigurationError, DataError
from progrl.files import read_json

ROOT = Path(__file__).parents[2]


def auto(*overrides: str) -> Config:
    return load_config(ROOT / "params.yaml", "tiny", ["threads=auto", *overrides])


@pytest.mark.parametrize(("most", "tried"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6])])
def test_the_numbers_that_are_tried(most: int, tried: list[int]) -> None:
    assert counts(most) == tried


def test_fewer_threads_win_where_more_are_hardly_faster() -> None:
    assert fewest_near_best({1: 1.04, 2: 1.0}) == 1
    assert fewest_near_best({1: 1.2, 2: 1.0, 4: 1.3}) == 2


def test_it_is_measured_for_the_models_shape_and_torch_is_left_as_it_was() -> None:
    shape, before = shape_of(auto().agent, ROOT), torch.get_num_threads()
    assert shape is not None
    found = measure(shape, 8, 2)
    assert list(found) == [1, 2] and min(found.values()) > 0
    assert torch.get_num_threads() == before


def test_a_stage_stays_with_what_it_has_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[int, int]]()

    def told(shape: object, rows: int, most: int) -> dict[int, float]:
        asked.append((rows, most))
        return {1: 2.0, 2: 1.0}

    monkeypatch.setattr(threads, "measure", told)
    monkeypatch.setattr(threads, "cores", lambda: 7)
    config = auto("processes=2", "engine.slots=9")
    for _ in range(2):
        assert settled(config, ROOT, tmp_path).threads == 2
    assert asked == [(9, 3)]
    assert read_json(tmp_path / "threads.json") == {"threads": 2}


def test_a_number_is_taken_as_it_is(tmp_path: Path) -> None:
    config = load_config(ROOT / "params.yaml", "tiny", ["threads=3"])
    assert settled(config, ROOT, tmp_path) == config
    assert threads_of(config, ROOT) == 3
    assert list(tmp_path.iterdir()) == []


def test_where_it_cannot_be_measured_a_number_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = load_config(ROOT / "params.yaml", "smollm", ["threads=auto", "agent.folder=nowhere"])
    with pytest.raises(ConfigurationError, match=r"no config\.json.*give a number"):
        threads_of(there, tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigurationError, match=r"launcher.*give a number"):
        threads_of(auto(), ROOT)


@pytest.mark.parametrize("kept", ["{}", "[]", '{"threads": 0}', '{"threads": "x"}', "{", "null"])
def test_a_damaged_note_of_what_was_measured_is_told(kept: str, tmp_path: Path) -> None:
    (tmp_path / "threads.json").write_text(kept)
    with pytest.raises(DataError, match=r"threads\.json"):
        settled(auto(), ROOT, tmp_path)
