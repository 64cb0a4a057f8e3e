"""Episodes played during the update before: by older weights, and nothing else is older."""

import copy
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from progrl.agent.engines.local import LocalEngine
from progrl.agent.seats import ModelAgent
from progrl.config import load_config
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import HashedEncoder
from progrl.errors import ConfigurationError, EngineFault, EnvironmentFault
from progrl.rollout import World
from progrl.seeds import Seed
from progrl.training.grpo import GrpoTrainer
from progrl.training.rows import Row
from progrl.training.update import Group
from tests.rollout.desk import CONFIG, model_agent, tasks, trained, world

STEPS = 7


@dataclass(frozen=True)
class Kept(World):
    """Keeps what was played, a list a step, the probes' among them."""

    kept: list[list[Trajectory]] = field(default_factory=list)

    def shared(self, played: list[Trajectory]) -> list[Trajectory]:
        self.kept.append(super().shared(played))
        return self.kept[-1]


class Wordy(GrpoTrainer):
    """Pays for words: at what is asked of agents so small a model earns nothing."""

    def _groups(self, *args: Any) -> list[Group]:
        return [
            replace(g, scores=[float(sum(len(u.sampled) for u in t.turns)) for t in g.trajectories])
            for g in super()._groups(*args)
        ]


class Killed(Exception):
    pass


def trainer(folder: Path, level: int, stop: int | None = None, **changes: Any) -> Wordy:
    """A trainer that probes after steps 0 and 7, with a checkpoint after steps 3 and 6."""
    agent, plain = model_agent(), world()
    assert isinstance(agent.engine, LocalEngine)
    kept = Kept(plain.domains, plain.users, plain.draw, plain.in_flight)
    given = {
        **{"steps": STEPS, "tasks": 4, "group": 4, "probe_every": STEPS, "checkpoint_every": 3},
        **{"async_level": level, "learning_rate": 0.003, "temperature": 1.0, **changes},
    }

    def record(row: Row, seconds: dict[str, float]) -> None:
        if row["step"] == stop:
            raise Killed

    return Wordy(
        config=CONFIG.model_copy(update={"grpo": CONFIG.grpo.model_copy(update=given)}),
        model=copy.deepcopy(trained()[0]),
        sampler_agent=agent,
        greedy_agent=ModelAgent(agent.engine, agent.codec, 0.0, 8),
        sync=agent.engine.set_weights_from,
        world=kept,
        probe_world=plain,
        tasks=tasks(60),
        probe=tasks(64)[-4:],
        encoder=HashedEncoder(),
        seed=Seed.root(5).child("grpo"),
        folder=folder,
        record=record,
        progress=lambda done, total, text: None,
    )


def sampled(one: Wordy) -> list[list[list[int]]]:
    """What each step's episodes have sampled."""
    assert isinstance(one.world, Kept)
    return [[t.tokens()[0] for t in played] for played in one.world.kept]


def weights(one: GrpoTrainer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in one.model.parameters()])


def background() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "ahead"]


def test_a_step_is_played_with_the_weights_of_before_the_update(tmp_path: Path) -> None:
    plain, ahead = (trainer(tmp_path / str(level), level) for level in (0, 1))
    still = trainer(tmp_path / "still", 0, learning_rate=1e-12)
    rows, lagging, _ = plain.run(), ahead.run(), still.run()
    assert [row.get("lag") for row in lagging] == [None, 0, 1, 1, 0, 1, 1, 0]
    assert not any("lag" in row for row in rows)
    assert background() == []
    # The first step is the same, up to the weights that it leaves.
    assert {n: v for n, v in lagging[1].items() if n != "lag"} == rows[1]
    # In the second they have moved, but what plays is as if they had not.
    assert sampled(ahead)[1] == sampled(still)[1] != sampled(plain)[1]
    assert sampled(ahead)[2] != sampled(still)[2]
    # The objective's ratio is to the weights that played: it starts at 1 where nothing lags.
    cut = {0: list[float](), 1: list[float]()}
    for row in lagging[1:]:
        cut[row["lag"]].append(row["clip_share"])
    assert cut[0] == [0, 0, 0]
    assert max(cut[1]) > 0


def test_where_every_step_has_a_checkpoint_nothing_lags(tmp_path: Path) -> None:
    plain, ahead = (trainer(tmp_path / str(n), n, checkpoint_every=1) for n in (0, 1))
    expected = [{**row, "lag": 0} if row["step"] else row for row in plain.run()]
    assert ahead.run() == expected
    assert torch.equal(weights(ahead), weights(plain))


def test_killed_and_resumed_it_ends_the_same(tmp_path: Path) -> None:
    changes = {"dynamic_sampling": True}  # replaces groups by ones that do not lag
    left = trainer(tmp_path / "left", 1, **changes)
    rows = left.run()
    for stop in (2, 5):  # while the next step is played
        with pytest.raises(Killed):
            trainer(tmp_path / "killed", 1, stop, **changes).run()
        assert background() == []
    resumed = trainer(tmp_path / "killed", 1, **changes)
    assert resumed.run() == rows
    assert torch.equal(weights(resumed), weights(left))


def test_lost_episodes_end_it_with_the_same_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(level: int) -> str:
        one = trainer(tmp_path / str(level), level)
        engine, opened = one.sampler_agent.engine, list[int]()
        real = engine.open

        def fail() -> Any:
            opened.append(1)
            if len(opened) > 16 + 4:  # the first probe and the first step
                raise EngineFault("The engine is gone.")
            return real()

        monkeypatch.setattr(engine, "open", fail)
        with pytest.raises(EnvironmentFault) as found:
            one.run()
        assert [row["step"] for row in one.rows] == [0, 1]
        return str(found.value)

    assert said(1) == said(0)
    assert "The engine is gone." in said(0)
    assert background() == []


def test_an_engine_that_sleeps_during_updates_is_refused() -> None:
    vllm = "engine={kind: vllm, slots: 8, dtype: float32, max_tokens: 8, correction: 2.0}"
    given = ["grpo.async_level=1", vllm, "engine.memory=0.1"]
    load_config(overrides=[*given, "engine.sleep=false"])
    with pytest.raises(ConfigurationError, match=r"grpo.async_level: .*engine.sleep=false"):
        load_config(overrides=[*given, "engine.sleep=true"])
