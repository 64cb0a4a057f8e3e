"""Whole steps of progrl's GRPO."""

from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from progrl.agent.seats import ModelAgent
from progrl.config import load_config
from progrl.embedding import HashedEncoder
from progrl.seeds import Seed
from progrl.stages.parts import make_world
from progrl.training.grpo import GrpoTrainer
from progrl.users.scripted import StaticUser
from speed.turnstile import Turnstile
from speed.ways.desk import Desk, DeskCodec
from speed.ways.ours import engine_of, model_of
from speed.worker import Job
from speed.workload import Workload

PARAMS = Path(__file__).resolve().parents[2] / "params.yaml"


def config_of(work: Workload, credit: str, compile: bool) -> Any:
    """The default job's configuration with the workload's sizes."""
    changes = {
        "grpo.tasks": work.conversations // work.group,
        "grpo.group": work.group,
        "grpo.steps": 1_000_000,
        "grpo.probe_every": 1_000_000,
        "grpo.checkpoint_every": 1_000_000,
        "grpo.probe_horizon": 2,
        "grpo.learning_rate": 1e-6,
        "grpo.credit": f"{{kind: {credit}}}",
        "engine.max_tokens": work.sampled,
        "agent.window": work.window,
        "agent.compile": str(compile).lower(),
        "horizon": f"{{kind: fixed, turns: {work.turns}}}",
        "domains.train": "[retail]",
        "processes": 1,
        "embedding": "{kind: hashed}",
    }
    return load_config(PARAMS, None, [f"{key}={value}" for key, value in changes.items()])


def grpo(work: Workload, credit: str = "equalized", compile: bool = False) -> Job:
    """Steps of the default job's trainer: episodes, advantages, update, new weights to the engine.

    Args:
        credit: how advantages are shared among tokens; `equalized` is what others do.
        compile: use the kernels, in sampling and in training.

    Returns:
        A job whose facts are the seconds by part.
    """
    config, desk = config_of(work, credit, compile), Desk()
    model, codec, user = model_of(work), DeskCodec(work), StaticUser()
    engine = engine_of(work, compile=compile)
    agents = [
        ModelAgent(engine, codec, heat, work.sampled) for heat in (config.grpo.temperature, 0.0)
    ]
    world = make_world({desk.name: desk}, {desk.name: user}, "a", work.conversations)
    turnstile = Turnstile()
    seconds: list[dict[str, float]] = []

    def record(row: dict[str, Any], spent: dict[str, float]) -> None:
        seconds.append(spent)
        turnstile.wait()

    trainer = GrpoTrainer(
        config=config,
        model=model,
        sampler_agent=agents[0],
        greedy_agent=agents[1],
        sync=engine.set_weights_from,
        world=world,
        probe_world=world,
        tasks=list(islice(desk.tasks("train", 1), 50 * config.grpo.tasks)),
        probe=list(islice(desk.tasks("validation", 1), 1)),
        encoder=HashedEncoder(),
        seed=Seed.root(1),
        folder=Path(mkdtemp(prefix="progrl-speed-")),
        record=record,
        progress=lambda done, total, text: None,
    )
    turnstile.start(trainer.run)  # up to the probe before the first step

    def job() -> dict[str, Any]:
        turnstile.step()
        before, after = seconds[-2:]
        return {name: after[name] - before.get(name, 0.0) for name in ("rollout", "update")}

    return job
