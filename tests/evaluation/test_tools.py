from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.agent.seats import DoNothingAgent, ExpertAgent, RandomAgent
from progrl.environments.registry import domain
from progrl.environments.service.replay import obedient_reply
from progrl.errors import DataError
from progrl.evaluation.interaction import pooled
from progrl.evaluation.metrics import measure, tool_consistency
from progrl.evaluation.statistics import Interval
from progrl.evaluation.tools import (
    Calls,
    Retention,
    alike,
    alike_queries,
    calls,
    consistency,
    edit_distance,
    retention,
    selection,
    self_similarity,
    tool_efficiency,
)
from progrl.rollout import World
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from progrl.users.scripted import own_user

from .records import BYE, LOOK, make_result, make_task, make_trajectory
from .test_metrics import REWARD

PROFILE = Profile("plain", 20, 1.0, 0.0, 0.0, 0.0, 0.0)
RETAIL = domain("retail")
GYMS = ["function", "intention", "persuade", "search", "tau", "telepathy", "travel", "turtle"]
TASKS = list(islice(RETAIL.tasks("test", 5), 10))
NAMES = st.lists(st.sampled_from("abc"), max_size=7)


class ObedientUser:
    async def reply(self, history, view, profile):
        replies = sum(m.role == "user" for m in history) - 1
        return obedient_reply(view, history[-1].content, replies)


def played(agent):
    world = World({"retail": RETAIL}, {"retail": ObedientUser()}, lambda seed: PROFILE, 4)
    seed = Seed("test")
    specs = [world.spec(t, seed.child(t.id), seed.child(t.id), 12, {}) for t in TASKS]
    return world.play(specs, agent)


def test_calls_are_named_in_order_words_left_out():
    assert calls(make_trajectory(make_task(), (LOOK, BYE))) == ("look_up",)


def test_edit_distance_by_hand():
    assert edit_distance("kitten", "sitting") == pytest.approx(3 / 7)
    assert edit_distance(["find", "look", "cancel"], ["find", "cancel"]) == pytest.approx(1 / 3)
    assert edit_distance([], []) == 0 and edit_distance([], ["find"]) == 1


@given(NAMES, NAMES, NAMES)
def test_edit_distance_is_a_distance(a, b, c):
    assert 0 <= edit_distance(a, b) == edit_distance(b, a) <= 1
    assert (edit_distance(a, b) == 0) == (a == b)
    steps = [edit_distance(x, y) * max(len(x), len(y)) for x, y in ((a, b), (b, c), (a, c))]
    assert steps[2] <= steps[0] + steps[1] + 1e-9


def test_tool_efficiency_by_hand():
    expert = [Calls("t1", 0, True, 3), Calls("t2", 0, True, 2), Calls("t3", 0, True, 0)]
    a = [Calls("t1", 0, True, 4), Calls("t2", 0, True, 1), Calls("t3", 0, True, 1)]
    b = [Calls("t1", 0, True, 6), Calls("t2", 0, False, 2), Calls("t3", 0, True, 0)]
    # Only t1 is solved by both and needs a tool.
    assert tool_efficiency(a, b, expert) == ({"t1": [0.75]}, {"t1": [0.5]})
    # With fewer calls than the expert's it is 1 and no more.
    assert tool_efficiency(a, a, expert)[0] == {"t1": [0.75], "t2": [1.0]}
    assert tool_efficiency(a, b, []) == ({}, {})


def test_tool_efficiency_pairs_trials():
    expert = [Calls("t", 0, True, 2), Calls("t", 1, True, 3)]
    a = [Calls("t", 0, True, 4), Calls("t", 1, True, 3)]
    b = [Calls("t", 0, True, 2)]
    assert tool_efficiency(a, b, expert) == ({"t": [0.5]}, {"t": [1.0]})


def test_the_expert_selects_as_the_expert_does():
    for trajectory, task in zip(played(ExpertAgent()), TASKS, strict=True):
        agreed, cases = selection(trajectory, task, RETAIL)
        assert agreed == cases == len(calls(trajectory))


@pytest.mark.parametrize("name", GYMS)
@pytest.mark.parametrize("agent", [ExpertAgent(), RandomAgent()], ids=lambda a: a.name)
def test_gyms_in_which_calls_speak_to_the_user_are_played_again(name, agent):
    gym = domain(name)
    tasks = list(islice(gym.tasks("test", 1), 4))
    world = World({name: gym}, {name: own_user(gym)}, lambda seed: PROFILE, 4)
    specs = [world.spec(t, Seed("u").child(t.id), Seed("a").child(t.id), 12, {}) for t in tasks]
    for trajectory, task in zip(world.play(specs, agent), tasks, strict=True):
        agreed, cases = selection(trajectory, task, gym)
        assert cases and (agreed == cases or agent.name != "expert")


def test_selection_by_hand():
    trajectory, task = next(
        (t, task)
        for t, task in zip(played(ExpertAgent()), TASKS, strict=True)
        if len(calls(t)) >= 2
    )
    _, cases = selection(trajectory, task, RETAIL)
    # The last call is left out and the agent closes in its place.
    at = max(i for i, turn in enumerate(trajectory.turns) if turn.source == "tool")
    quit_early = replace(trajectory.turns[at], action=BYE, observation="", source="")
    cut = replace(trajectory, turns=[*trajectory.turns[:at], quit_early])
    assert selection(cut, task, RETAIL) == (cases - 1, cases)


def test_doing_nothing_selects_nothing():
    shares = [selection(t, k, RETAIL) for t, k in zip(played(DoNothingAgent()), TASKS, strict=True)]
    assert pooled(shares).value == 0


def test_any_episode_can_be_played_again():
    trajectories = played(RandomAgent())
    assert all(t.valid for t in trajectories)
    shares = [selection(t, k, RETAIL) for t, k in zip(trajectories, TASKS, strict=True)]
    assert 0 <= pooled(shares).value < 1


def test_an_episode_of_another_world_is_refused(caplog):
    one = next(t for t in played(ExpertAgent()) if calls(t))
    task = next(t for t in TASKS if t.id == one.task_id)
    turns = [replace(t, observation="another") if t.source == "tool" else t for t in one.turns]
    other = replace(one, turns=turns)
    with pytest.raises(DataError, match="played again"):
        selection(other, task, RETAIL)
    # Its result counts all the same, without what the expert would have called.
    result = measure(other, task, 0, REWARD, RETAIL)
    assert result.success and result.expert_calls is None
    assert "would have called is unknown" in caplog.text


def test_retention_by_hand():
    held_out = Interval(0.3, 0.2, 0.4, 100)
    assert retention(held_out, [Interval(0.6, 0.5, 0.7, 100)]) == Retention(0.5, "ratio")
    both = [Interval(0.6, 0.5, 0.7, 100), Interval(0.4, 0.3, 0.5, 100)]
    assert retention(held_out, both) == Retention(0.6, "ratio")
    # The guard: a training domain whose success may be as low as 0.2 makes no ratio.
    assert retention(held_out, [Interval(0.3, 0.2, 0.4, 9)]) == Retention(0.3, "absolute")
    assert retention(held_out, [*both, Interval(0.3, 0.1, 0.5, 9)]) == Retention(0.3, "absolute")
    assert retention(held_out, []) == Retention(0.3, "absolute")
    assert retention(None, both) is None


def test_consistency_by_hand():
    similar = alike(["cancel", "cancel", "cancel", "return"])
    own = [("a", "b"), ("a", "b"), ("a", "c"), ("x",)]
    # Pairs of the first three: similarities 1, 1/2, 1/2.
    assert self_similarity(own, similar) == pytest.approx(2 / 3)
    best = [("a",), ("a",), ("a",), ("y",)]
    assert consistency(own, best, similar) == pytest.approx(2 / 3)
    assert consistency(best, own, similar) == pytest.approx(1.5)


def test_consistency_is_undefined_without_similar_queries():
    own = [("a",), ("b",)]
    assert consistency(own, own, alike(["cancel", "return"])) is None
    assert consistency(own, own, alike(["cancel", "cancel"])) is None  # nothing in common


def test_similar_queries_by_their_vectors():
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    assert alike_queries(vectors, 0.7).tolist() == [
        [True, True, False],
        [True, True, False],
        [False, False, True],
    ]


def test_consistency_of_results_goes_by_family_and_first_trials():
    def rows(*sequences):
        return [make_result(f"t{i}", tools=tools) for i, tools in enumerate(sequences)]

    own, best = rows(("a", "b"), ("a", "c"), ("a", "b")), rows(("a",), ("a",), ("a",))
    again = [make_result("t0", trial=1, tools=("z",))]
    # Pairs: 1/2, 1, 1/2.
    assert tool_consistency([*own, *again], best) == pytest.approx(2 / 3)
    assert tool_consistency(own, best[:1]) is None
    assert tool_consistency(own, []) is None


@given(st.lists(NAMES, min_size=2, max_size=6))
def test_an_agent_is_as_consistent_as_itself(sequences):
    similar = alike(["same"] * len(sequences))
    value = consistency(sequences, sequences, similar)
    assert value is None or value == 1
    assert 0 <= self_similarity(sequences, similar) <= 1
