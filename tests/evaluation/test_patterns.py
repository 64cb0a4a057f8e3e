import numpy as np
import pytest

from progrl.dialogue.messages import ToolCall
from progrl.dialogue.trajectories import End
from progrl.evaluation.patterns import reuse_lift, reuses
from progrl.memory import LongTermMemory, Pattern

from .records import BYE, make_task, make_trajectory

NEAR, FAR = np.array([0.8, 0.6], np.float32), np.array([-1, 0], np.float32)


def memory(read_only=True):
    made = LongTermMemory(2, store_above=1.0, similar_above=0.5)
    for number, (tools, vector) in enumerate(
        [(("find", "get", "cancel", "tell"), [1, 0]), (("find", "return"), [0, 1])]
    ):
        pattern = Pattern(f"t{number}", "retail", "query", tools, 1.6, 1)
        made.store(pattern, np.array(vector, np.float32))
    made.read_only = read_only
    return made


def episode(*tools, **changes):
    return make_trajectory(make_task(), (*(ToolCall(name) for name in tools), BYE), **changes)


def test_reuse_by_hand():
    # The nearest pattern is the first (cosine 0.8). One edit of four is 0.25, two are 0.5.
    assert reuses(episode("find", "get", "cancel", "tell"), NEAR, memory()) == 1
    assert reuses(episode("find", "get", "cancel"), NEAR, memory()) == 1
    assert reuses(episode("find", "cancel"), NEAR, memory()) == 0
    assert reuses(episode("find", "get", "cancel", "tell", success=False), NEAR, memory()) == 0
    assert reuses(episode("find", "return"), NEAR, memory()) == 0  # of the second nearest


def test_reuse_is_undefined_where_no_pattern_is_similar():
    assert reuses(episode("find"), FAR, memory()) is None
    assert reuses(episode("find"), NEAR, LongTermMemory(2, read_only=True)) is None
    assert reuses(episode("find", end=End.FAULT), NEAR, memory()) is None


def test_calls_that_failed_are_no_part_of_it():
    trajectory = episode("find", "oops", "oops", "oops", "get", "cancel", "tell")
    for turn in trajectory.turns[1:4]:
        turn.failed = True
    assert reuses(trajectory, NEAR, memory()) == 1


def test_the_reference_is_frozen():
    with pytest.raises(ValueError, match="read-only"):
        reuses(episode("find"), NEAR, memory(read_only=False))
    frozen = memory()
    before = frozen.state_dict()
    reuses(episode("find"), NEAR, frozen)
    assert frozen.state_dict() == before


def test_the_lift_by_hand():
    # Pairs (1, 0), (1, 1), (0, 0): 1/3; the task that one lacks is left out.
    lift = reuse_lift([1.0, 1.0, 0.0, None], [0.0, 1.0, 0.0, 1.0], 0.95, 500, 1)
    assert lift.mean == pytest.approx(1 / 3) and lift.n == 3
    assert 0 <= lift.low <= lift.mean <= lift.high <= 1
    assert reuse_lift([1.0, None], [0.0, 1.0], 0.95, 500, 1) is None
