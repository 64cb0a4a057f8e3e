import pytest

from progrl.errors import CheckpointError
from progrl.memory import Record, ShortTermMemory


def test_it_keeps_the_last_records() -> None:
    memory = ShortTermMemory(2)
    for step in range(1, 4):
        memory.add(2.0 + step, 0.25 * step, step)
    assert len(memory) == 2
    assert list(memory) == [Record(4.0, 0.5, 2), Record(5.0, 0.75, 3)]


def test_a_state_gives_it_back() -> None:
    memory, other = ShortTermMemory(3), ShortTermMemory(3)
    for step in range(5):
        memory.add(2.5, 0.5, step)
    other.load_state_dict(memory.state_dict())
    memory.add(3.0, 0.6, 5)
    other.add(3.0, 0.6, 5)
    assert list(other) == list(memory)


def test_other_states_are_refused() -> None:
    state = ShortTermMemory(3).state_dict()
    with pytest.raises(CheckpointError, match="size"):
        ShortTermMemory(3).load_state_dict({"records": []})
    with pytest.raises(CheckpointError, match="holds 3"):
        ShortTermMemory(4).load_state_dict(state)
