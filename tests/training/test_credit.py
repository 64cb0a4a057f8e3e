"""Groups under every score and credit: what must hold of the advantages and of the update."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from progrl.agent.model import make_model
from progrl.config import load_config
from progrl.config.training import GrpoConfig
from progrl.dialogue.trajectories import End, Trajectory
from progrl.embedding import HashedEncoder
from progrl.rollout import World
from progrl.seeds import Seed
from progrl.training.grpo import GrpoTrainer
from progrl.training.optimiser import Optimiser
from progrl.training.rows import episodes_row
from progrl.training.scoring import Scorer
from progrl.training.update import Group, policy_update
from tests.builders import make_task, make_trajectory

CONFIG = load_config()
BOUNDED, PUBLISHED = {"kind": "bounded", "weight": 0.5}, {"kind": "published"}
SHAPINGS: list[dict[str, Any]] = [{"kind": "naive"}, {"kind": "r2g", "gamma": 0.8}]
SHAPINGS.append({"kind": "em", "k": 2.0})
CREDITS: list[dict[str, Any]] = [{"kind": "tree"}, {"kind": "equalized"}]
CREDITS += [{**shaping, "combine": BOUNDED} for shaping in SHAPINGS]
AS_PUBLISHED = [{**shaping, "combine": PUBLISHED} for shaping in SHAPINGS]
SCORES: list[dict[str, Any]] = [{"kind": "structured"}, {"kind": "sum"}, {"kind": "mean"}]
SCORES.append({"kind": "r2g", "gamma": 0.8})


def grpo(**changes: Any) -> GrpoConfig:
    return GrpoConfig.model_validate({**CONFIG.grpo.model_dump(), **changes})


def configs(credits: list[dict[str, Any]]) -> list[GrpoConfig]:
    return [grpo(credit=c, score=s) for c, s in product(credits, SCORES)]


def name(config: GrpoConfig) -> str:
    combine = getattr(config.credit, "combine", None)
    parts = [config.credit.kind, *([combine.kind] if combine else []), config.score.kind]
    return "-".join(parts)


def episode(number: int, gains: list[float], success: bool) -> Trajectory:
    """An episode whose tokens no other episode samples."""
    trajectory = make_trajectory(tuple(gains), success, expert_turns=4)
    for turn in trajectory.turns:
        turn.context, turn.sampled, turn.logprobs = [1, 2], [3 + number, 3, 4], [-3.0, -3.0, -3.0]
    return trajectory


def lone_reward() -> list[Trajectory]:
    """Only the first earns anything, and that with its last turn."""
    gains = [[0.0, 0.0, 1.0], [0.0, 0.0], [0.0, 0.0, 0.0], [0.0]]
    return [episode(n, row, success=n == 0) for n, row in enumerate(gains)]


def group(trajectories: list[Trajectory], config: GrpoConfig) -> Group:
    return Group.of(trajectories, CONFIG.reward, config.score)


def tiny() -> torch.nn.Module:
    return make_model(vocabulary=32, hidden=16, layers=1, heads=2, head_dim=8, ffn=32, seed=1)


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("config", configs(CREDITS + AS_PUBLISHED), ids=name)
def test_a_lone_reward_at_the_end_has_a_gradient(config: GrpoConfig) -> None:
    model = tiny()
    before = weights(model)
    groups = [group(lone_reward(), config)]
    stats = policy_update(Optimiser(model, 0.01, 0, 1), groups, config, 1.0, 40, Random(1))
    assert stats is not None and stats.gradient_norm > 1e-3
    assert (weights(model) - before).abs().max() > 1e-4


rows = st.lists(st.integers(0, 2), min_size=1, max_size=5)
members = st.lists(st.tuples(rows, st.booleans()), min_size=2, max_size=6)


def played(drawn: list[tuple[list[int], bool]]) -> list[Trajectory]:
    return [episode(n, [g / 10 for g in row], won) for n, (row, won) in enumerate(drawn)]


@given(members, st.sampled_from(configs(CREDITS)))
@settings(max_examples=200)
def test_the_worst_of_a_mixed_group_is_pushed_down(
    drawn: list[tuple[list[int], bool]], config: GrpoConfig
) -> None:
    mixed = group(played(drawn), config)
    episodes = mixed.episodes(config)
    if not episodes:
        assert np.ptp(mixed.scores) < 1e-6
        return
    means = [float(np.mean(e.advantages)) for e in episodes]
    assert means[int(np.argmin(mixed.scores))] < 0 < means[int(np.argmax(mixed.scores))]


def test_as_published_a_failure_without_reward_is_not_pushed_down() -> None:
    config = grpo(credit=AS_PUBLISHED[0])
    _, *failures = group(lone_reward(), config).episodes(config)
    assert [set(e.advantages) for e in failures] == [{0.0}] * 3


@given(members)
@settings(max_examples=50)
def test_equalized_is_plain_grpo_and_so_is_bounded_on_average(
    drawn: list[tuple[list[int], bool]],
) -> None:
    plain, *shaped = (grpo(credit=c) for c in CREDITS[1:])
    wanted = group(played(drawn), plain).episodes(plain)
    assert all(len(set(e.advantages)) == 1 for e in wanted)
    for config in shaped:
        for e, z in zip(group(played(drawn), config).episodes(config), wanted, strict=True):
            assert np.mean(e.advantages) == pytest.approx(z.advantages[0], abs=1e-9)
            assert np.abs(e.advantages).max() <= 1.5 * abs(z.advantages[0]) + 1e-9


def test_the_turn_that_made_progress_has_more_than_the_others() -> None:
    made = [episode(0, [0.0, 0.8, 0.0], False), episode(1, [0.0, 0.0, 0.0], False)]
    config = grpo(credit=CREDITS[2])
    first, second = group(made, config).episodes(config)
    assert first.advantages[3] > first.advantages[0] == first.advantages[6] > 0
    assert second.advantages == [second.advantages[0]] * 9 and second.advantages[0] < 0


def test_scores_of_a_group_are_those_chosen() -> None:
    made = [episode(0, [0.2, 0.4], False), make_trajectory(end=End.FAULT)]
    wanted = {"structured": 0.3, "sum": 0.3, "mean": 0.15, "r2g": 0.1 + 0.8 * 0.2}
    for score in SCORES:
        built = group(made, grpo(score=score))
        assert built.scores == [pytest.approx(wanted[score["kind"]])]
        assert built.rewards == [pytest.approx([0.1 / 1.7, 0.2 / 1.7])]


def noisy() -> list[Trajectory]:
    """Progress that differs by rounding alone."""
    return [episode(0, [0.1, 0.2], False), episode(1, [0.3], False)]


@pytest.mark.parametrize("config", [grpo(credit=c) for c in CREDITS], ids=name)
def test_the_kl_penalty_never_pushes_a_group_without_signal(config: GrpoConfig) -> None:
    """With a reference far away and a large weight, the silent group still changes nothing."""
    strong = config.model_copy(update={"kl": 10.0})
    reference = Scorer(tiny()).eval()
    for parameter in reference.parameters():
        parameter.data.mul_(1.5)
    live, silent = group(lone_reward(), strong), group(noisy(), strong)
    assert silent.scores[0] != silent.scores[1] and silent.episodes(strong) == []
    alone, together, nothing = tiny(), tiny(), tiny()
    for model, groups in ((alone, [live]), (together, [live, silent]), (nothing, [silent])):
        optimiser = Optimiser(model, 0.01, 0.1, 1)
        policy_update(optimiser, groups, strong, 1.0, 40, Random(1), reference)
    assert torch.equal(weights(nothing), weights(tiny()))
    assert torch.equal(weights(alone), weights(together))
    assert not torch.equal(weights(alone), weights(nothing))


def test_groups_without_signal_and_without_episodes_are_counted_apart() -> None:
    config = grpo()
    lost = [make_trajectory(end=End.FAULT) for _ in range(2)]
    groups = [
        group(lone_reward(), config),
        group(noisy(), config),
        group([episode(n, [0.5], True) for n in range(3)], config),
        group([*lone_reward()[:1], *lost], config),
        group(lost, config),
    ]
    row = episodes_row(groups, [], config)
    assert (row["groups"], row["groups_zero_variance"], row["groups_invalid"]) == (5, 2, 2)
    assert (row["episodes"], row["faults"]) == (14, 4)


class Played(GrpoTrainer):
    """A trainer whose groups are given, for each of the times that it asks for some."""

    given: Iterator[list[Group]]

    def _groups(self, tasks: Any, node: Any, step: int) -> list[Group]:
        return next(self.given)


@pytest.mark.parametrize("replace", [False, True])
def test_groups_that_dynamic_sampling_replaces_are_counted_too(
    replace: bool, tmp_path: Path
) -> None:
    config = CONFIG.model_copy(update={"grpo": grpo(dynamic_sampling=replace)})
    tasks = [make_task(number) for number in range(4)]
    nobody: Any = None  # plays: the groups are given
    nowhere = World({}, {}, nobody, 1)
    trainer = Played(
        config=config,
        model=tiny(),
        sampler_agent=nobody,
        greedy_agent=nobody,
        sync=lambda model: None,
        world=nowhere,
        probe_world=nowhere,
        tasks=tasks,
        probe=tasks,
        encoder=HashedEncoder(),
        seed=Seed.root(1),
        folder=tmp_path,
        record=lambda row, seconds: None,
        progress=lambda done, total, line: None,
    )
    live, silent, lost = lone_reward(), noisy(), [make_trajectory(end=End.FAULT)]
    first = [group(members, config.grpo) for members in (live, silent, lost)]
    trainer.given = iter([first, [group(silent, config.grpo), group(live, config.grpo)]])
    row = trainer._step(1)
    counts = [row[k] for k in ("groups", "groups_zero_variance", "groups_invalid", "episodes")]
    assert counts == ([5, 2, 1, 13] if replace else [3, 1, 1, 7])
    assert row["window_episodes"] == 0  # the episodes' expert needs more turns than the horizon
    assert row["gradient_norm"] > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"credit": {"kind": "naive"}},
        {"credit": {"kind": "naive", "combine": BOUNDED, "gamma": 0.8}},
        {"credit": {"kind": "equalized", "combine": BOUNDED}},
        {"credit": {"kind": "tree", "combine": PUBLISHED}},
        {"credit": {"kind": "r2g", "combine": BOUNDED}},
        {"credit": {"kind": "em", "k": 0.0, "combine": BOUNDED}},
        {"credit": {"kind": "naive", "combine": {"kind": "published", "weight": 0.5}}},
        {"credit": {"kind": "naive", "combine": {"kind": "bounded", "weight": 1.5}}},
        {"score": {"kind": "sum", "gamma": 0.8}},
        {"score": {"kind": "r2g", "gamma": 0.0}},
    ],
)
def test_keys_without_effect_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        grpo(**changes)
