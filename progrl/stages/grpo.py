"""Stage `grpo`: the warm start learns from its own episodes with simulated users."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from progrl.agent.lora import fold, folded
from progrl.agent.model import load_trained, prepare_training, save_model
from progrl.agent.seats import ModelAgent
from progrl.config.orchestration import LearnedTools
from progrl.dialogue.codec import Codec
from progrl.embedding import Encoder
from progrl.environments.contracts import Domain
from progrl.files import file_digest, write_json, write_jsonl
from progrl.orchestration import FoldedPolicies, Improver, Orchestrator
from progrl.reporting.sources import GRPO as METRICS
from progrl.seeds import Seed
from progrl.stages.advice import MEMORY as RECALLED
from progrl.stages.advice import (
    TOOLS,
    Advisors,
    advisors,
    catalogues_of,
    check_fitted,
    tools_of,
)
from progrl.stages.base import Context, Metrics
from progrl.stages.definitions import GRPO as MODEL
from progrl.stages.definitions import MEMORY, SFT, UNTRAINED
from progrl.stages.parts import (
    TASKS,
    USERS,
    Timings,
    encoder_of,
    engine_of,
    in_turn,
    set_threads,
    splits_of,
    training_world,
    world_of,
)
from progrl.training.grpo import GrpoTrainer
from progrl.training.rows import Row
from progrl.training.tools import ToolLearning

STARTS = {"sft": SFT, "untrained": UNTRAINED}


def flat(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The figures of a row, those within others under names like `weights/retail/task`."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def run(context: Context) -> Metrics:
    """Write models/grpo, memory and metrics/grpo.jsonl."""
    config, root = context.config, context.root
    set_threads(config, context.project)
    timings = Timings(context.work)
    model, codec = load_trained(root / STARTS[config.grpo.start], config.agent)
    splits = splits_of(context)
    world = world_of(context, config.user.family, config.engine.slots, config.user)
    played, tasks = training_world(config, world, splits["train"])
    seed = Seed.root(config.seed).child("grpo")
    encoder = encoder_of(context)
    tools, advised = _learning(context, world.domains, root / SFT, encoder, seed.child("advice"))
    engine = engine_of(config, model, context.project)
    prepare_training(model, config.agent, seed.child("tuning").value)
    agents = {
        kind: ModelAgent(engine, codec, temperature, config.engine.max_tokens, kind, advisor)
        for kind, temperature, advisor in (
            ("grpo", config.grpo.temperature, advised.training),
            ("greedy", 0.0, advised.probing),
        )
    }

    def sync(trained: Any) -> None:
        with folded(trained) as plain:
            engine.set_weights_from(plain)

    def record(row: Row, seconds: dict[str, float]) -> None:
        numbers = {
            f"grpo/{k}": v for k, v in flat(row) if k != "step" and isinstance(v, int | float)
        }
        times = {f"time/{k}": v for k, v in seconds.items()}
        spent = world.spent()
        if spent and context.ranks.leads:  # in no output: what a cache holds changes it
            write_json(context.work / "spent.json", spent)
        context.recorder.metrics({**numbers, **times, **spent}, row["step"])

    trainer = GrpoTrainer(
        config=config,
        model=model,
        sampler_agent=agents["grpo"],
        greedy_agent=agents["greedy"],
        sync=sync,
        rest=engine.rest,
        world=played,
        probe_world=world,
        tasks=tasks,
        probe=in_turn(splits["validation"], lambda t: t.domain)[: config.grpo.probe_tasks],
        encoder=encoder,
        seed=seed,
        folder=context.work / "checkpoints",
        record=record,
        progress=context.progress,
        tools=tools,
    )
    trainer.run()
    if context.ranks.leads:
        _write(context, trainer, codec)
        timings.save(trainer.clock.seconds)
    return {"grpo/probe": trainer.best[0], "grpo/best_step": float(trainer.best[1])}


def _write(context: Context, trainer: GrpoTrainer, codec: Codec) -> None:
    """Write all that a finished training leaves."""
    root = context.root
    fold(trainer.model)
    save_model(root / MODEL, trainer.model, codec)
    if trainer.tools is not None:
        trainer.tools.improver.policies.whole.save(root / MODEL / TOOLS)
        trainer.long.save(root / MODEL / TOOLS / RECALLED)
    write_json(root / MODEL / "provenance.json", _provenance(context, *trainer.best))
    trainer.long.save(root / MEMORY)
    write_jsonl(root / METRICS, trainer.rows)


def _provenance(context: Context, probe: float, step: int) -> dict[str, Any]:
    """What the model was made of, and the best probe with its step."""
    start = STARTS[context.config.grpo.start]
    made_of = {"start": start, "tasks": TASKS, "users": USERS}
    digests = {name: file_digest(context.root / path) for name, path in made_of.items()}
    return {"stage": "grpo", **digests, "best_probe": probe, "best_step": step}


def _learning(
    context: Context, domains: Mapping[str, Domain], folder: Path, encoder: Encoder, seed: Seed
) -> tuple[ToolLearning | None, Advisors]:
    """The tool policy of the folder, which goes on learning, and who advises the agents."""
    config = context.config.orchestration
    if not isinstance(config, LearnedTools):
        return None, advisors(config, None, None, seed)
    policies = FoldedPolicies.load(tools_of(folder))
    check_fitted(policies, config, folder)
    orchestrator = Orchestrator(encoder)
    catalogues = catalogues_of(context, domains, encoder)
    improver = Improver(policies, config.policy.improvement, catalogues, encoder)
    learning = ToolLearning(orchestrator, improver)
    return learning, advisors(config, policies, orchestrator, seed)
