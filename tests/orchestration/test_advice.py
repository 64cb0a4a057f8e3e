"""Advice: by policies that have not seen the task, alike in alike episodes, some of it dropped."""

from collections.abc import Sequence
from functools import cache

import pytest

from progrl.agent.advice import Advice, Advisor
from progrl.config.orchestration import BiasAdvice, HintAdvice, LearnedAdvice
from progrl.dialogue.messages import Action, Say, ToolCall
from progrl.memory import LongTermMemory, Pattern
from progrl.orchestration import FoldedPolicies, Orchestrator, PolicyAdvisor, RandomAdvisor
from progrl.orchestration import fit_folds as fit
from progrl.seeds import Seed
from tests.orchestration.desk import CATALOGUES, ENCODER, RETAIL, SEED, configured, dialogues

QUERY = "i want to cancel my order"
ACTIONS: tuple[Action, ...] = (
    Say("who are you?"),
    ToolCall("find_user_by_email", {}),
    Say("done", closing=True),
)
HINT = HintAdvice(kind="hint", top=3, drop=0.3, policy=configured())
BIAS = BiasAdvice(kind="bias", strength=2.0, policy=configured())


@cache
def policies() -> FoldedPolicies:
    return fit(configured(steps=30), CATALOGUES, dialogues("train", 60), ENCODER, 0.5, SEED)


def advisor(config: LearnedAdvice = HINT, drop: float = 0.0, seed: Seed = SEED) -> PolicyAdvisor:
    asked = Orchestrator(ENCODER)
    return PolicyAdvisor(config, asked, policies().for_training, drop, seed)


def told(advised: Advisor, task: str = "a", actions: Sequence[Action] = ACTIONS) -> list[Advice]:
    """The advice on the messages of an episode."""
    guide = advised.guide(task, QUERY)
    advice = []
    for action in actions:
        advice.append(guide.advise(RETAIL.tools))
        guide.took(action)
    return advice


def test_hints_are_the_top_of_what_the_policy_ranks() -> None:
    course = Orchestrator(ENCODER).open(policies().for_training("a"), QUERY, RETAIL.tools)
    for advice, action in zip(told(advisor()), ACTIONS, strict=True):
        assert list(advice.hint) == course.ranked()[:3]
        assert advice.lean == ()
        course.took(action)


def test_a_bias_is_the_probability_times_its_strength() -> None:
    course = Orchestrator(ENCODER).open(policies().for_training("a"), QUERY, RETAIL.tools)
    first = told(advisor(BIAS))[0]
    assert first.hint == ()
    assert dict(first.lean) == {tool: pytest.approx(2 * p) for tool, p in course.ranked()}
    assert sum(value for _, value in first.lean) == pytest.approx(2)


def test_tasks_of_different_folds_ask_different_policies() -> None:
    by_task = {task: told(advisor(), task)[0].hint for task in "abcdefgh"}
    used = {task: policies().for_training(task) for task in by_task}
    for one in by_task:
        for other in by_task:
            assert (by_task[one] == by_task[other]) == (used[one] is used[other])
    assert len({id(policy) for policy in used.values()}) == 3


@pytest.mark.parametrize("make", [advisor, lambda drop, seed: RandomAdvisor(3, drop, seed)])
def test_episodes_that_go_alike_are_advised_alike(make: object) -> None:
    advised = make(drop=0.5, seed=SEED)  # type: ignore[operator]
    tasks = [f"task-{number}" for number in range(200)]
    first = [told(advised, task) for task in tasks]
    assert [told(advised, task) for task in tasks] == first
    # Half of the hints are dropped, in each message anew and in each round.
    messages = [bool(advice.hint) for episode in first for advice in episode]
    assert 0.42 < sum(messages) / len(messages) < 0.58
    assert {tuple(bool(a.hint) for a in episode) for episode in first} >= {
        (True, False, True),
        (False, True, False),
    }
    advised.begin(SEED.child("another"), [QUERY])
    assert [told(advised, task) for task in tasks] != first
    advised.begin(SEED)
    assert [told(advised, task) for task in tasks] == first


def test_random_hints_know_nothing() -> None:
    advised = RandomAdvisor(2, 0.0, SEED)
    hints = [a.hint for task in range(400) for a in told(advised, str(task), ACTIONS[:1])]
    names = [*(tool.name for tool in RETAIL.tools), "talk", "stop"]
    counts = {name: sum(hint[0][0] == name for hint in hints) for name in names}
    expected = 400 / len(names)
    assert all(0.3 * expected < count < 2 * expected for count in counts.values())
    for hint in hints:
        assert len({name for name, _ in hint}) == 2
        assert hint[0][1] >= hint[1][1] >= 0 and hint[0][1] + hint[1][1] <= 1


def test_an_episodes_tools_may_change() -> None:
    guide = advisor().guide("a", QUERY)
    whole = guide.advise(RETAIL.tools).hint
    few = RETAIL.tools[:2]
    offered = {name for name, _ in guide.advise(few).hint}
    assert offered < {few[0].name, few[1].name, "talk", "stop"}
    assert guide.advise(RETAIL.tools).hint == whole


def test_a_round_recalls_once_a_task() -> None:
    memory = LongTermMemory(ENCODER.dimension, 10, 0.0, 0.5)
    pattern = Pattern.of(dialogues("train", 60)[0], reward=1.0, step=0)
    memory.store(pattern, ENCODER.encode([QUERY])[0])
    advised = PolicyAdvisor(HINT, Orchestrator(ENCODER, memory), policies().for_training, 0.0, SEED)
    with_memory = told(advised)
    told(advised)
    assert memory.state_dict()["retrieved"] == [1]
    assert with_memory != told(advisor())
    advised.begin(SEED)
    assert told(advised) == with_memory
    assert memory.state_dict()["retrieved"] == [2]
