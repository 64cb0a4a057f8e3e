"""Plans, and advice as a conversation goes."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.config.orchestration import PlanConfig
from progrl.dialogue.messages import Say, ToolCall, ToolSpec
from progrl.errors import ConfigurationError
from progrl.memory import LongTermMemory, Pattern
from progrl.orchestration import Catalogue, Orchestrator, Plan
from tests.orchestration.desk import CATALOGUES, ENCODER, RETAIL, dialogues, learned

QUERY = "i want to return something . my name is will hill . zip 6628"
ARGMAX = PlanConfig(choice="argmax", confidence="chosen")
SAMPLED = PlanConfig(choice="sampled", confidence="chosen")
ORCHESTRATOR = Orchestrator(ENCODER)


def _plan(config: PlanConfig, horizon: int = 20, seed: int = 1, query: str = QUERY) -> Plan:
    return ORCHESTRATOR.plan(config, learned(), query, RETAIL.tools, horizon, Random(seed))


@settings(deadline=None, max_examples=40)
@given(
    st.text(max_size=40),
    st.integers(1, 25),
    st.integers(0, 999),
    st.sampled_from(["argmax", "sampled"]),
    st.sampled_from(["chosen", "highest"]),
)
def test_a_plan_is_whole(query: str, horizon: int, seed: int, choice: str, kind: str) -> None:
    config = PlanConfig.model_validate({"choice": choice, "confidence": kind})
    plan = _plan(config, horizon, seed, query)
    assert len(plan.sequence) == len(plan.confidence) == len(plan.fallback) <= horizon
    assert len(plan.sequence) == horizon or plan.sequence[-1] == "stop"
    assert "stop" not in plan.sequence[:-1]
    assert all(0 < sure <= 1 for sure in plan.confidence)
    names = set(CATALOGUES["retail"].names)
    assert all(
        tool in names and other in names and tool != other
        for tool, other in zip(plan.sequence, plan.fallback, strict=True)
    )
    assert list(plan.to_json()) == ["sequence", "confidence", "fallback"]


def test_probabilities_sum_to_one_over_all_tools() -> None:
    course = ORCHESTRATOR.open(learned(), QUERY, RETAIL.tools)
    for action in (None, Say("what is the order ?"), ToolCall("get_order"), ToolCall("unknown")):
        if action is not None:
            course.took(action)
        ranked = course.ranked()
        assert sorted(c.tool for c in ranked) == sorted(CATALOGUES["retail"].names)
        assert sum(c.probability for c in ranked) == pytest.approx(1, abs=1e-12)
        shares = [c.probability for c in ranked]
        assert shares == sorted(shares, reverse=True)


def test_a_plan_takes_the_best_tool_and_falls_back_on_the_second() -> None:
    plan, course = _plan(ARGMAX), ORCHESTRATOR.open(learned(), QUERY, RETAIL.tools)
    for tool, sure, other in zip(plan.sequence, plan.confidence, plan.fallback, strict=True):
        first, second = course.ranked()[:2]
        assert (tool, sure, other) == (first.tool, first.probability, second.tool)
        course.use(tool)


def test_advice_follows_the_expert_through_an_unseen_dialogue() -> None:
    right = total = 0
    for dialogue in dialogues("validation", 60)[:20]:
        course = ORCHESTRATOR.open(learned(), dialogue.query, RETAIL.tools)
        for turn in dialogue.turns:
            assert turn.action is not None
            best = course.ranked()[0].tool
            course.took(turn.action)
            called = turn.action.name if isinstance(turn.action, ToolCall) else None
            said = "stop" if isinstance(turn.action, Say) and turn.action.closing else "talk"
            right, total = right + (best == (called or said)), total + 1
    assert right / total > 0.6


def test_tools_are_drawn_by_their_probability() -> None:
    ranked = ORCHESTRATOR.open(learned(), "hello", RETAIL.tools).ranked()
    drawn = Counter(_plan(SAMPLED, 1, seed, "hello").sequence[0] for seed in range(600))
    for tool, probability in ranked:
        assert drawn[tool] / 600 == pytest.approx(probability, abs=0.07)
    assert _plan(SAMPLED, seed=5) == _plan(SAMPLED, seed=5)


def test_a_drawn_tools_confidence_is_its_own_or_the_highest() -> None:
    highest = PlanConfig(choice="sampled", confidence="highest")
    own = [_plan(SAMPLED, 6, seed) for seed in range(20)]
    top = [_plan(highest, 6, seed) for seed in range(20)]
    assert [p.sequence for p in own] == [p.sequence for p in top]
    pairs = [
        pair
        for a, b in zip(own, top, strict=True)
        for pair in zip(a.confidence, b.confidence, strict=True)
    ]
    assert all(a <= b for a, b in pairs)
    assert any(a < b for a, b in pairs)


def test_memory_enters_the_advice() -> None:
    memory = LongTermMemory(ENCODER.dimension, store_above=0.0, read_only=False)
    vector = ENCODER.encode([QUERY + " please"])[0]
    memory.store(Pattern("t", "retail", QUERY, ("get_order",), 1.5, 0), vector)
    plain = ORCHESTRATOR.open(learned(), QUERY, RETAIL.tools).ranked()
    recalled = Orchestrator(ENCODER, memory).open(learned(), QUERY, RETAIL.tools).ranked()
    assert plain != recalled
    unlike = Orchestrator(ENCODER, memory).open(learned(), "zzz", RETAIL.tools).ranked()
    assert unlike == ORCHESTRATOR.open(learned(), "zzz", RETAIL.tools).ranked()
    with pytest.raises(ConfigurationError, match="7-d"):
        Orchestrator(ENCODER, LongTermMemory(7))


def test_tools_may_change_on_the_way() -> None:
    course = ORCHESTRATOR.open(learned(), QUERY, RETAIL.tools)
    course.use("get_order")
    before = {c.tool: c.probability for c in course.ranked()}
    course.offer(Catalogue.of([*RETAIL.tools, ToolSpec("gift", "Wrap a gift.", {})], ENCODER))
    after = {c.tool: c.probability for c in course.ranked()}
    assert set(after) == {*before, "gift"}
    ratio = [after[tool] / before[tool] for tool in before]
    assert ratio == pytest.approx([1 - after["gift"]] * len(before), rel=1e-4)
    assert np.isfinite(list(after.values())).all()
