from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from progrl.agent.seats import DoNothingAgent, ExpertAgent
from progrl.config import load_config
from progrl.environments.registry import domain
from progrl.environments.service.replay import obedient_reply
from progrl.errors import DataError, EnvironmentFault
from progrl.evaluation.metrics import success
from progrl.evaluation.protocol import Protocol, check_held_out
from progrl.rollout import World
from progrl.users.contracts import Profile

from .records import make_task

CONFIG = load_config(Path(__file__).parents[2] / "params.yaml")
PROFILE = Profile("plain", 20, 1.0, 0.0, 0.0, 0.0, 0.0)
RETAIL = domain("retail")
TASKS = list(islice(RETAIL.tasks("test", 5), 12))


class ObedientUser:
    """Answers what is asked; `seeds` are those of the views it was given."""

    def __init__(self, broken: bool = False) -> None:
        self.seeds: list[int] = []
        self.broken = broken

    async def reply(self, history, view, profile):
        if self.broken:
            raise ConnectionError("nobody there")
        self.seeds.append(view.seed)
        replies = sum(m.role == "user" for m in history) - 1
        return obedient_reply(view, history[-1].content, replies)


def protocol(user=None, **changes):
    world = World({"retail": RETAIL}, {"retail": user or ObedientUser()}, lambda seed: PROFILE, 8)
    config = CONFIG.evaluation.model_copy(update=changes)
    return Protocol(world, config, CONFIG.reward)


def evaluate(agent, name, **changes):
    run = protocol(**changes)
    return run.results(TASKS, run.play(TASKS, agent, name))


def test_the_expert_solves_all_and_doing_nothing_none():
    expert, nothing = evaluate(ExpertAgent(), "expert"), evaluate(DoNothingAgent(), "do_nothing")
    assert [r.task for r in expert] == [t.id for t in TASKS]
    assert [success(r) for r in expert] == [1.0] * len(TASKS)
    assert all(r.success is False and r.turns == 1 and r.tool_calls == 0 for r in nothing)
    # w1 + w2 + w3/2 for a success in just the expert's turns.
    for row in expert:
        if row.turns == row.expert_turns:
            assert row.reward == pytest.approx(1.6)


def test_trial_j_has_user_seed_j_whoever_plays():
    run = protocol(trials=3)
    first, second = run.specs(TASKS, "sft"), run.specs(TASKS, "grpo")
    assert [s.user_seed for s in first] == [s.user_seed for s in second]
    assert len({s.user_seed for s in first}) == 3 * len(TASKS)
    assert [s.tags["trial"] for s in first[:4]] == [0, 1, 2, 0]
    assert {s.horizon for s in first} == {20}
    # Neither the order of the tasks nor their number changes a task's user.
    again = run.specs(TASKS[::-1][:3], "sft")
    by_task = {(s.task.id, s.tags["trial"]): s.user_seed for s in first}
    assert all(by_task[s.task.id, s.tags["trial"]] == s.user_seed for s in again)


def test_a_user_is_given_the_seed_of_its_trial():
    user = ObedientUser()
    run = protocol(user, trials=2)
    run.play(TASKS[:4], ExpertAgent(), "expert")
    expected = {s.user_seed for s in run.specs(TASKS[:4], "expert")}
    assert user.seeds and set(user.seeds) <= expected


def test_the_horizon_is_that_of_the_configuration():
    results = evaluate(ExpertAgent(), "expert", horizon=2)
    assert all(r.turns <= 2 for r in results)
    assert {r.end for r in results if r.expert_turns > 2} == {"horizon"}
    assert all(success(r) == 0.0 for r in results if r.expert_turns > 2)


def test_too_many_faults_end_the_evaluation_with_their_cause():
    with pytest.raises(EnvironmentFault, match="nobody there"):
        protocol(ObedientUser(broken=True)).play(TASKS, ExpertAgent(), "expert")


def test_allowed_faults_are_counted_apart():
    run = protocol(ObedientUser(broken=True), max_fault_share=1.0)
    results = run.results(TASKS, run.play(TASKS, ExpertAgent(), "expert"))
    lost = [r for r in results if not r.valid]
    assert lost and all("nobody there" in r.fault and r.reward is None for r in lost)
    # An expert that needs no words from the user is not touched by the fault.
    assert all(r.success for r in results if r.valid)


def test_what_was_trained_on_is_not_evaluated_on():
    training = list(islice(RETAIL.tasks("train", 5), 5))
    check_held_out(training, {"retail": TASKS})
    with pytest.raises(DataError, match="share task"):
        check_held_out([*training, TASKS[3]], {"retail": TASKS})
    disguised = replace(TASKS[3], id="retail-other", seed=1)
    with pytest.raises(DataError, match=TASKS[3].content_hash):
        check_held_out([*training, disguised], {"retail": TASKS})


def test_a_benchmark_is_neither_empty_nor_repetitive():
    with pytest.raises(DataError, match="no task"):
        check_held_out([], {"retail": []})
    with pytest.raises(DataError, match="twice"):
        check_held_out([], {"retail": [make_task(1), make_task(2), make_task(1)]})
