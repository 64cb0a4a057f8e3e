"""Contexts by their equation, and catalogues."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.config.orchestration import DecayContext, MeanContext
from progrl.dialogue.messages import Say, ToolCall, ToolSpec
from progrl.errors import ConfigurationError
from progrl.orchestration import Catalogue, contexts, tool_of
from tests.orchestration.desk import CATALOGUES, ENCODER, RETAIL

USED = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]], np.float32)


def test_equation_18() -> None:
    rows = contexts(DecayContext(kind="decay", alpha=0.7), USED)
    expected = [
        [0, 0, 0],
        [0.3, 0, 0],
        [0.21, 0.3, 0],
        [0.147, 0.21, 0.3],
        [0.4029, 0.147, 0.21],
    ]
    assert rows == pytest.approx(np.array(expected), abs=1e-6)


def test_the_mean_of_the_last_k() -> None:
    rows = contexts(MeanContext(kind="mean_k", k=2), USED)
    expected = [[0, 0, 0], [1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]
    assert rows == pytest.approx(np.array(expected))


@given(st.integers(0, 12), st.floats(0, 1), st.integers(1, 5))
def test_a_context_depends_on_the_past_alone(count: int, alpha: float, k: int) -> None:
    used = np.eye(12, dtype=np.float32)[:count]
    for config in (DecayContext(kind="decay", alpha=alpha), MeanContext(kind="mean_k", k=k)):
        rows = contexts(config, used)
        assert rows.shape == (count + 1, 12)
        assert not rows[0].any()
        assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-5
        assert (contexts(config, used[: count // 2]) == rows[: count // 2 + 1]).all()


def test_talk_and_stop_stand_beside_the_domains_tools() -> None:
    names = CATALOGUES["retail"].names
    assert names == (*(tool.name for tool in RETAIL.tools), "talk", "stop")
    assert tool_of(Say("what is your email ?")) == "talk"
    assert tool_of(Say("bye", closing=True)) == "stop"
    assert tool_of(ToolCall("get_order", {"order": "1"})) == "get_order"


@pytest.mark.parametrize("names", [("a", "a"), ("a", "stop"), ("talk",)])
def test_names_must_differ(names: tuple[str, ...]) -> None:
    tools = [ToolSpec(name, f"Tool {n}.", {}) for n, name in enumerate(names)]
    with pytest.raises(ConfigurationError, match=f"one name: {names[-1]}"):
        Catalogue.of(tools, ENCODER)


def test_a_union_holds_each_card_once() -> None:
    other = Catalogue.of([RETAIL.tools[0], ToolSpec("fly", "Fly away.", {})], ENCODER)
    union = Catalogue.union([CATALOGUES["retail"], other])
    assert union.cards == (*CATALOGUES["retail"].cards, ("fly", "Fly away."))
    assert union.vectors[-1] == pytest.approx(ENCODER.encode(["Fly away."])[0])
