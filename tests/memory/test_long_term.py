import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import Turn
from progrl.embedding import Vectors
from progrl.errors import CheckpointError, DataError
from progrl.memory import LongTermMemory, Pattern
from progrl.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from tests.builders import make_trajectory


def pattern(number: int, reward: float = 1.5) -> Pattern:
    return Pattern(f"toy-{number}", "toy", f"query {number}", ("look", "tell"), reward, number)


def vector(*values: float) -> Vectors:
    made = np.array(values, np.float32)
    return made / np.linalg.norm(made)


def memory(count: int = 0, **settings: Any) -> LongTermMemory:
    """A memory in the plane with patterns at 0, 10, 20, ... degrees."""
    made = LongTermMemory(2, **settings)
    for number in range(count):
        angle = np.radians(10 * number)
        made.store(pattern(number), vector(np.cos(angle), np.sin(angle)))
    return made


def names(memory: LongTermMemory) -> list[str]:
    return [p.task_id for p in memory.patterns]


def retrieved(memory: LongTermMemory) -> list[int]:
    """How often each was found, the oldest first."""
    state = memory.state_dict()
    return [count for _, count in sorted(zip(state["serials"], state["retrieved"], strict=True))]


def test_a_pattern_keeps_the_tools_that_worked() -> None:
    trajectory = make_trajectory()
    trajectory.turns = [
        Turn(ToolCall("find_user", {"zip": "1"}), ""),
        Turn(ToolCall("get_order", {}), "", failed=True),
        Turn(None, "garbled"),
        Turn(ToolCall("get_order", {"order": "2"}), ""),
        Turn(Say("done", closing=True), "done"),
    ]
    made = Pattern.of(trajectory, 1.6, step=3)
    assert made == Pattern("toy-1", "toy", "query", ("find_user", "get_order"), 1.6, 3)
    assert Pattern.from_json(made.to_json()) == made


def test_only_rewards_above_the_threshold_are_stored() -> None:
    made = memory(store_above=1.0)
    assert not made.store(pattern(1, reward=1.0), vector(1, 0))
    assert made.store(pattern(2, reward=1.01), vector(1, 0))
    assert names(made) == ["toy-2"]


def test_search_by_hand() -> None:
    made = memory(10)
    found = made.search(vector(1, 0), 3)
    assert [p.task_id for p, _ in found] == ["toy-0", "toy-1", "toy-2"]
    assert [s for _, s in found] == pytest.approx(np.cos(np.radians([0, 10, 20])).tolist())
    assert memory().search(vector(1, 0), 3) == []


def test_the_context_is_the_mean_weighted_by_similarity() -> None:
    made = memory(store_above=0.0, similar_above=0.5)
    for number, row in enumerate([(1, 0), (0.6, 0.8), (0.5, 0.75**0.5), (0, 1)]):
        made.store(pattern(number), vector(*row))
    # Similar above 0.5 to (1, 0) are the first two, by 1 and 0.6; 0.5 itself is not above.
    expected = (1.0 * np.array([1, 0]) + 0.6 * np.array([0.6, 0.8])) / 1.6
    assert np.allclose(made.context(vector(1, 0)), expected, atol=1e-6)


def test_without_anything_similar_the_context_is_zero() -> None:
    made = memory()
    assert made.context(vector(1, 0)).tolist() == [0, 0]
    made.store(pattern(1), vector(0, 1))
    assert made.context(vector(1, 0)).tolist() == [0, 0]


def test_the_least_retrieved_goes_first_and_of_these_the_oldest() -> None:
    made = memory(3, capacity=3)
    made.search(vector(1, 0), 1)
    made.store(pattern(7), vector(0, 1))
    assert names(made) == ["toy-0", "toy-2", "toy-7"]
    made.context(vector(0, 1))  # retrieves toy-7 alone: 20 degrees are too far from 90
    made.store(pattern(8), vector(0, 1))
    assert names(made) == ["toy-0", "toy-7", "toy-8"]
    made.store(pattern(9), vector(0, 1))
    assert names(made) == ["toy-0", "toy-7", "toy-9"]


def test_age_is_when_it_was_stored_not_where() -> None:
    made = memory(3, capacity=3)
    made.search(vector(1, 0), 1)
    made.store(pattern(7), vector(0, 1))  # in the place of toy-1
    made.store(pattern(8), vector(0, 1))
    assert names(made) == ["toy-0", "toy-7", "toy-8"]


def test_a_task_solved_again_the_same_way_is_refreshed() -> None:
    made = memory(3, capacity=3)
    made.search(vector(1, 0), 1)
    better = replace(pattern(0), reward=1.7, step=9)
    assert made.store(better, vector(0, 1))
    assert [p.step for p in made.patterns] == [1, 2, 9]
    assert made.search(vector(0, 1), 1) == [(better, 1.0)]
    assert made.store(replace(pattern(0), tools=("look",)), vector(1, 0))
    assert names(made) == ["toy-2", "toy-0", "toy-0"]
    assert retrieved(made) == [0, 2, 0]


def test_reading_only_changes_nothing(tmp_path: Path) -> None:
    memory(5).save(tmp_path / "memory")
    made = LongTermMemory.load(tmp_path / "memory", read_only=True)
    before = made.state_dict()
    made.search(vector(1, 0), 2)
    made.context(vector(1, 0))
    assert made.state_dict() == before
    with pytest.raises(ValueError, match="read-only"):
        made.store(pattern(1), vector(1, 0))


def test_vectors_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        memory().store(pattern(1), np.ones(3, np.float32))


_ACTIONS = st.lists(
    st.tuples(st.sampled_from(["store", "search", "context"]), st.integers(0, 8)), max_size=40
)


def _act(made: LongTermMemory, action: tuple[str, int]) -> Any:
    what, number = action
    direction = vector(1.0 + number, 8.0 - number)
    if what == "store":
        return made.store(pattern(number, reward=0.8 + 0.1 * number), direction)
    return made.search(direction, 2) if what == "search" else made.context(direction).tolist()


@settings(max_examples=50, deadline=None)
@given(_ACTIONS, st.integers(0, 40))
def test_resuming_anywhere_changes_nothing(actions: list[tuple[str, int]], cut: int) -> None:
    whole, first, second = (LongTermMemory(2, capacity=5) for _ in range(3))
    seen = [_act(whole, action) for action in actions]
    again = [_act(first, action) for action in actions[:cut]]
    second.load_state_dict(first.state_dict(), first.tensors())
    again += [_act(second, action) for action in actions[cut:]]
    assert again == seen
    assert second.state_dict() == whole.state_dict()
    assert len(whole) <= 5


def test_resumed_it_sums_in_the_same_order() -> None:
    """Patterns that were refreshed lie elsewhere than their age says; digits must not tell."""
    random = np.random.default_rng(1)
    near = [vector(*(1.0 + random.normal(size=384))) for _ in range(60)]
    whole, resumed = LongTermMemory(384, capacity=40), LongTermMemory(384, capacity=40)
    for number in (*range(30), 3, 17, 5, *range(30, 45), 31, 8):
        whole.store(pattern(number), near[number])
        whole.search(near[number], 3)
    resumed.load_state_dict(whole.state_dict(), whole.tensors())
    for query in near:
        assert resumed.context(query).tolist() == whole.context(query).tolist()


@settings(max_examples=100, deadline=None)
@given(_ACTIONS, st.integers(1, 6))
def test_a_plain_list_would_keep_the_same(actions: list[tuple[str, int]], capacity: int) -> None:
    made = LongTermMemory(2, capacity=capacity)
    plain: list[list[Any]] = []  # [id, retrievals], the oldest first
    for what, number in actions:
        name, direction = f"toy-{number}", vector(1.0 + number, 8.0 - number)
        if what != "store":
            found = {p.task_id for p, _ in made.search(direction, 2)}
            assert len(found) == min(2, len(plain))
            for entry in plain:
                entry[1] += entry[0] in found
        elif made.store(pattern(number), direction):
            known = [entry for entry in plain if entry[0] == name]
            if not known and len(plain) == capacity:
                plain.remove(min(plain, key=lambda entry: int(entry[1])))
            plain = [entry for entry in plain if entry[0] != name] + (known or [[name, 0]])
        assert names(made) == [entry[0] for entry in plain]
        assert retrieved(made) == [entry[1] for entry in plain]
        assert len(made) <= capacity


@pytest.mark.parametrize("count", [0, 4])
def test_a_folder_gives_the_memory_back(tmp_path: Path, count: int) -> None:
    made = memory(count, capacity=50, store_above=0.5, similar_above=0.4)
    made.search(vector(1, 0), 2)
    made.save(tmp_path / "memory")
    loaded = LongTermMemory.load(tmp_path / "memory")
    assert loaded.state_dict() == made.state_dict()
    assert np.array_equal(loaded.vectors, made.vectors)
    assert loaded.capacity == 50
    assert loaded.store(pattern(9), vector(1, 0))


def test_other_states_are_refused() -> None:
    made = memory(2)
    state, tensors = made.state_dict(), made.tensors()
    with pytest.raises(CheckpointError, match="long-term memory"):
        memory().load_state_dict({**state, "extra": 1}, tensors)
    with pytest.raises(CheckpointError, match="tensors"):
        memory().load_state_dict(state, {})
    with pytest.raises(CheckpointError, match="similar_above"):
        memory(similar_above=0.9).load_state_dict(state, tensors)
    with pytest.raises(CheckpointError, match="do not fit"):
        memory().load_state_dict(state, {"vectors": tensors["vectors"][:1]})
    with pytest.raises(CheckpointError, match="do not fit"):
        memory(capacity=1).load_state_dict(state, tensors)
    twice = [state["patterns"][0]] * 2
    for wrong in ({"serials": [0, 0]}, {"added": 1}, {"retrieved": [0]}, {"patterns": twice}):
        with pytest.raises(CheckpointError, match="do not fit"):
            memory().load_state_dict({**state, **wrong}, tensors)
    for wrong in ({"patterns": [1, 2]}, {"patterns": [{}, {}]}, {"serials": ["a", "b"]}):
        with pytest.raises(CheckpointError, match="no pattern or count"):
            made.load_state_dict({**state, **wrong}, tensors)
    assert made.state_dict() == state


def test_a_checkpoint_holds_an_empty_memory(tmp_path: Path) -> None:
    made = memory()
    saved = Checkpoint(1, {"memory": made.tensors()}, {"long": made.state_dict()})
    save_checkpoint(tmp_path, saved)
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    made.load_state_dict(loaded.state["long"], loaded.tensors["memory"])
    assert len(made) == 0
    assert made.store(pattern(1), vector(1, 0))


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "memory"

    def load_after(name: str, change: Any) -> None:
        memory(3).save(folder)
        path = folder / name
        path.write_bytes(change(path.read_bytes()))
        LongTermMemory.load(folder)

    with pytest.raises(DataError, match="damaged"):
        load_after("vectors.safetensors", lambda content: content[:-4])
    with pytest.raises(DataError, match="damaged"):
        load_after("patterns.jsonl", lambda content: content.split(b"\n", 1)[1])
    for name, value in ((b"similar_above", b'"x"'), (b"serials", b"[%d]" % 10**30)):
        with pytest.raises(DataError, match="damaged"):
            load_after(
                "memory.json",
                lambda content, name=name, value=value: re.sub(
                    rb'"%s": ([^\[,]+|\[[^]]*\])' % name, b'"%s": %s' % (name, value), content
                ),
            )
    with pytest.raises(DataError, match="line 2"):
        load_after("patterns.jsonl", lambda content: content.replace(b"}\n{", b"}\n{,", 1))
    with pytest.raises(DataError, match="version 1"):
        load_after("memory.json", lambda content: content.replace(b'"version": 1', b'"version": 9'))
    with pytest.raises(DataError, match="no such file"):
        LongTermMemory.load(tmp_path / "nowhere")


def test_ten_thousand_patterns_are_searched_in_no_time() -> None:
    made = LongTermMemory(384)
    rows = np.random.default_rng(1).standard_normal((10_000, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for number, row in enumerate(rows):
        made.store(pattern(number), row)
    times = []
    for row in rows[:20]:
        start = time.perf_counter()
        found = made.search(row, 8)
        times.append(time.perf_counter() - start)
        assert found[0][1] == pytest.approx(1.0, abs=1e-5)
    # Under 1 ms on a quiet machine; others may be at work on this one.
    assert min(times) < 0.01
