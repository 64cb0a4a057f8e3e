"""Weighted regression on the agent's own episodes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from progrl.config.orchestration import ImprovementConfig
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import Trajectory, Turn
from progrl.errors import CheckpointError, ConfigurationError
from progrl.memory import LongTermMemory
from progrl.orchestration import FoldedPolicies, Improver, ToolPolicy, fit_folds, fold_of
from progrl.orchestration.improvement import regression_loss, regression_weights
from tests.orchestration.desk import CATALOGUES, ENCODER, SEED, SIMILAR, configured, dialogues

Values = list[float]


def _policies() -> FoldedPolicies:
    few = dialogues("train", 200)[:40]
    return fit_folds(configured(steps=30), CATALOGUES, few, ENCODER, SIMILAR, SEED)


def _improver(policies: FoldedPolicies | None = None, **changes: float) -> Improver:
    config = configured().improvement.model_dump() | changes
    made = ImprovementConfig.model_validate(config)
    return Improver(policies or _policies(), made, CATALOGUES, ENCODER)


def _episode(task_id: str, *tools: str) -> Trajectory:
    turns = [
        Turn(Say("hello", closing=t == "stop") if t in ("talk", "stop") else ToolCall(t), t)
        for t in tools
    ]
    return Trajectory(task_id, "retail", "f", 1, 3, "i want to cancel my order", 20, 1, turns)


def _first(policy: ToolPolicy) -> dict[str, float]:
    """P of each tool at the start of the episodes above, with an empty memory."""
    vector = torch.from_numpy(ENCODER.encode(["i want to cancel my order"])[0])
    features = torch.cat([vector, torch.zeros(2 * ENCODER.dimension)])[None]
    with torch.no_grad():
        shares = policy(features, CATALOGUES["retail"]).softmax(dim=1)[0].tolist()
    return dict(zip(CATALOGUES["retail"].names, shares, strict=True))


def test_worked_weights() -> None:
    weights = regression_weights(torch.tensor([0.0, 0.5, -0.5, 2.0]), 0.5, 5.0)
    assert weights.tolist() == pytest.approx([1.0, np.e, 1 / np.e, 5.0])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0.01, 10), st.floats(1, 100))
def test_weights_are_bounded_and_rise(advantages: Values, beta: float, most: float) -> None:
    ordered = torch.tensor(sorted(advantages), dtype=torch.float32)
    weights = regression_weights(ordered, beta, most)
    assert (weights >= 0).all()
    assert (weights <= most * (1 + 1e-6)).all()
    assert (weights.diff() >= 0).all()


def test_worked_loss() -> None:
    p, gold = torch.tensor([[0.5, 0.5], [0.9, 0.1]]), torch.tensor([[0.25, 0.75], [0.9, 0.1]])
    chosen, weights = torch.tensor([0, 1]), torch.tensor([2.0, 0.5])
    loss, kl = regression_loss(p.log(), gold.log(), chosen, weights, 0.1)
    divergence = (0.5 * np.log(2) + 0.5 * np.log(2 / 3)) / 2
    assert float(kl) == pytest.approx(divergence, rel=1e-5)
    expected = (2 * np.log(2) + 0.5 * np.log(10)) / 2 + 0.1 * divergence
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_what_went_well_becomes_likelier_than_what_went_badly() -> None:
    improver = _improver(kl=0.0)
    before = _first(improver.policies.whole)
    good, bad = _episode("a", "cancel_order", "stop"), _episode("b", "get_product", "stop")
    for _ in range(30):
        figures = improver.update([good, bad], [1.0, -1.0])
    after = _first(improver.policies.whole)
    gained = {tool: after[tool] - before[tool] for tool in after}
    assert gained["cancel_order"] > 0.3
    assert gained["cancel_order"] > gained["get_product"] + 0.3
    assert figures["decisions"] == 4
    assert figures["weight"] == pytest.approx((5 + np.exp(-2)) / 2)
    assert figures["weight_share_most"] == 0.5


def test_the_divergence_holds_it_close_to_gold() -> None:
    episodes = [_episode("a", "transfer_to_human", "stop")]
    moved = []
    for kl in (0.0, 50.0):
        improver = _improver(kl=kl)
        for _ in range(10):
            figures = improver.update(episodes, [1.0])
        moved.append(figures["kl"])
    assert moved[1] < moved[0] / 5


def test_a_part_learns_nothing_from_its_own_fold() -> None:
    improver = _improver()
    before = [_first(policy) for policy in improver.policies.all]
    improver.update([_episode("a", "cancel_order", "stop")], [1.0])
    after = [_first(policy) for policy in improver.policies.all]
    own = fold_of("a", 3)
    assert [n for n in range(4) if before[n] == after[n]] == [own]


def test_a_resumed_run_goes_on_as_if_never_stopped() -> None:
    steps = [[_episode("a", "cancel_order", "stop")], [_episode("b", "get_order", "talk")]]
    memory = LongTermMemory(ENCODER.dimension)
    straight, first = _improver(), _improver()
    for episodes in steps:
        straight.update(episodes, [0.7], memory)
    first.update(steps[0], [0.7], memory)
    saved = {name: tensor.clone() for name, tensor in first.tensors().items()}
    second = _improver()
    second.load_state_dict(first.state_dict(), saved)
    second.update(steps[1], [0.7], memory)
    expected, found = straight.tensors(), second.tensors()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_another_runs_state_is_refused() -> None:
    improver = _improver()
    state, tensors = improver.state_dict(), improver.tensors()
    less = dict(list(tensors.items())[1:])
    cut = {**tensors, "0/weights/bias": torch.zeros(1)}
    for wrong in ((state, less), (state, cut), ({"folds": 4}, tensors), ({}, tensors)):
        with pytest.raises(CheckpointError):
            improver.load_state_dict(*wrong)


def test_episodes_without_a_tool_change_nothing() -> None:
    improver = _improver()
    before = _first(improver.policies.whole)
    idle = _episode("a")
    idle.turns = [Turn(None, "gibberish", failed=True)]
    assert improver.update([idle], [1.0])["decisions"] == 0
    assert improver.update([], []) == {"decisions": 0}
    assert _first(improver.policies.whole) == before


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="1 episodes, 2 advantages"):
        _improver().update([_episode("a", "stop")], [1.0, 2.0])
    policies = _policies()
    policies.whole.encoder = "another"
    with pytest.raises(ConfigurationError, match="another"):
        _improver(policies)
