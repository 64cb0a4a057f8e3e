"""Policy updates on a real, tiny model."""

from random import Random

import pytest
import torch

from progrl.agent.model import make_model
from progrl.config import load_config
from progrl.config.credit import EqualCredit, TreeCredit
from progrl.config.training import GrpoConfig
from progrl.dialogue.trajectories import End, Trajectory
from progrl.errors import DataError
from progrl.training.optimiser import Optimiser
from progrl.training.scoring import Inputs, Scorer
from progrl.training.update import Group, example, policy_update
from tests.builders import make_trajectory

GRPO = load_config().grpo


def tiny(seed: int = 1) -> torch.nn.Module:
    return make_model(vocabulary=32, hidden=16, layers=2, heads=2, head_dim=8, ffn=32, seed=seed)


def sampled(model: torch.nn.Module, ids: list[int], reward: float, turns: int = 2) -> Trajectory:
    """A trajectory whose log-probabilities are the model's own; only the last turn is rewarded."""
    trajectory = make_trajectory(gains=(0.0,) * (turns - 1) + (reward,), success=reward > 0)
    flat = []
    for turn in trajectory.turns:
        turn.context, turn.sampled = [1, 2, 3], list(ids)
        flat += [*turn.context, *turn.sampled]
    mask = torch.tensor([([False] * 3 + [True] * len(ids)) * turns])[:, 1:]
    with torch.no_grad():
        logprobs = Scorer(model)(Inputs.of(torch.tensor([flat]), mask))
    for number, turn in enumerate(trajectory.turns):
        turn.logprobs = logprobs[number * len(ids) : (number + 1) * len(ids)].tolist()
    return trajectory


def group(model: torch.nn.Module, rewards: list[float]) -> Group:
    members = [sampled(model, [4 + i, 5, 6 + i], r, turns=1 + i) for i, r in enumerate(rewards)]
    return Group(members, rewards)


def logprob(model: torch.nn.Module, trajectory: Trajectory, credit: str) -> float:
    """Of what is credited: the token in which the episodes of `group` part, or all on average."""
    ids, mask = trajectory.tokens()
    with torch.no_grad():
        logprobs = Scorer(model)(Inputs.of(torch.tensor([ids]), torch.tensor([mask])[:, 1:]))
    return float(logprobs[0] if credit == "tree" else logprobs.mean())


@pytest.mark.parametrize(
    "credit", [TreeCredit(kind="tree"), EqualCredit(kind="equalized")], ids=lambda c: c.kind
)
def test_a_lone_reward_at_the_end_moves_the_policy(credit: TreeCredit | EqualCredit) -> None:
    model = tiny()
    config = GRPO.model_copy(update={"credit": credit})
    groups = [group(model, [1.0, 0.0, 0.0, 0.0])]
    before = [logprob(model, t, credit.kind) for t in groups[0].trajectories]
    stats = policy_update(Optimiser(model, 0.003, 0, 1), groups, config, 1.0, 40, Random(1))
    after = [logprob(model, t, credit.kind) for t in groups[0].trajectories]
    assert stats is not None and stats.gradient_norm > 0 and stats.kl > 0
    assert after[0] > before[0]
    assert all(b < a for a, b in zip(before[1:], after[1:], strict=True))


def test_groups_without_signal_leave_the_weights_alone() -> None:
    model = tiny()
    before = {n: p.clone() for n, p in model.named_parameters()}
    groups = [group(model, [0.5] * 4), group(model, [0.1 + 0.2, 0.3])]
    assert policy_update(Optimiser(model, 0.1, 0.1, 1), groups, GRPO, 1, 40, Random(1)) is None
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())


def gradient(config: GrpoConfig, reference: Scorer | None = None) -> torch.Tensor:
    """The gradient of two groups, as Adam's first moment holds it."""
    model = tiny()
    groups = [group(model, [1.0, 0.0, 0.5, 0.0]), group(model, [0.0, 1.0])]
    optimiser = Optimiser(model, 0.01, 0, 1e9)
    policy_update(optimiser, groups, config, 1.0, 40, Random(1), reference)
    state = optimiser.tensors()["optimiser"]
    return torch.cat([v.flatten() for k, v in sorted(state.items()) if k.startswith("exp_avg/")])


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "dr_grpo"])
def test_the_update_does_not_depend_on_micro_batches(aggregation: str) -> None:
    gradients = []
    for budget in (1, 20, 10_000):
        changed = {"tokens_per_microbatch": budget, "aggregation": aggregation}
        gradients.append(gradient(GRPO.model_copy(update=changed)))
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-7, rtol=1e-4)
    torch.testing.assert_close(gradients[0], gradients[2], atol=1e-7, rtol=1e-4)


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "dr_grpo"])
def test_tokens_without_credit_may_be_left_out(aggregation: str) -> None:
    """A reference model, even of weight 0, has every token scored."""
    config = GRPO.model_copy(update={"aggregation": aggregation, "kl": 0.0})
    whole = gradient(config, Scorer(tiny()).eval())
    assert whole.abs().max() > 1e-4
    torch.testing.assert_close(gradient(config), whole, atol=1e-7, rtol=1e-4)


def test_faulty_episodes_are_no_part_of_the_baseline() -> None:
    model = tiny()
    good = group(model, [1.0, 0.0])
    lost = make_trajectory(end=End.FAULT)
    with_fault = Group([good.trajectories[0], lost, good.trajectories[1]], good.scores)
    assert [e.advantages for e in with_fault.episodes(GRPO)] == [
        e.advantages for e in good.episodes(GRPO)
    ]


def test_an_episode_that_does_not_fit_is_named_and_never_trained_on() -> None:
    trajectory = sampled(tiny(), [4, 5, 6], 1.0)
    trajectory.turns[1].logprobs = trajectory.turns[1].logprobs[:-1]
    with pytest.raises(DataError, match=r"task toy-1 \(seed 1\)"):
        example(trajectory)
    for turn in trajectory.turns:
        turn.sampled, turn.logprobs = [], []
    with pytest.raises(DataError, match="cannot be trained on"):
        example(trajectory)


def test_the_kl_penalty_pulls_back() -> None:
    moved = []
    for kl in (0.0, 10.0):
        model = tiny()
        config = GRPO.model_copy(update={"kl": kl, "minibatches": 1})
        reference = Scorer(tiny()).eval()
        optimiser = Optimiser(model, 0.003, 0, 1)
        groups = [group(model, [1.0, 0.0])]
        for _ in range(4):
            stats = policy_update(optimiser, groups, config, 1.0, 40, Random(1), reference)
        assert stats is not None
        moved.append(stats.kl)
    assert moved[1] < moved[0]
