"""Stage `sft`: a new or given model learns from the best-ranked dialogues."""

from collections.abc import Sequence
from typing import Any

from progrl.agent.advice import Advisor
from progrl.agent.lora import fold
from progrl.agent.model import load_trained, make_model, prepare_training, save_model
from progrl.config import Config
from progrl.config.agent import EmbeddedAgent
from progrl.config.orchestration import BiasAdvice
from progrl.dialogue.codec import Codec, Hint
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.trajectories import Trajectory, read_trajectories
from progrl.environments.contracts import Domain
from progrl.errors import DataError
from progrl.files import file_digest, write_json, write_jsonl
from progrl.orchestration import FoldedPolicies, Orchestrator
from progrl.reporting.sources import SFT as METRICS
from progrl.rewards import structured_reward
from progrl.seeds import Seed
from progrl.stages.advice import TOOLS, Advisors, advisors, fit_tools
from progrl.stages.base import Context, Metrics
from progrl.stages.definitions import SFT as MODEL
from progrl.stages.definitions import UNTRAINED
from progrl.stages.parts import (
    DIALOGUES,
    Timings,
    domains_of,
    encoder_of,
    in_turn,
    set_threads,
    splits_of,
)
from progrl.training.batching import Example
from progrl.training.scoring import Arithmetic
from progrl.training.sft import Row, SftTrainer


def run(context: Context) -> Metrics:
    """Write models/untrained, models/sft and metrics/sft.jsonl."""
    config, seed = context.config, Seed.root(context.config.seed).child("sft")
    set_threads(config, context.project)
    timings = Timings(context.work)
    domains = domains_of(config)
    splits = splits_of(context)
    dialogues = _best(dialogues_of(context, "train", splits["train"]), config)
    validation = dialogues_of(context, "validation", splits["validation"])
    model, codec = agent_of(context, dialogues, domains, seed)
    policies = fit_tools(context, domains, dialogues, seed.child("tools"))
    advised = _advisors(context, policies, seed.child("advice"))
    if context.ranks.leads:
        save_model(context.root / UNTRAINED, model, codec)
    prepare_training(model, config.agent, seed.child("tuning").value)
    window = config.agent.window

    def record(row: Row) -> None:
        numbers = {k: v for k, v in row.items() if isinstance(v, int | float) and k != "step"}
        context.recorder.metrics({f"sft/{k}": v for k, v in numbers.items()}, int(row["step"] or 0))

    trainer = SftTrainer(
        model,
        _examples(dialogues, codec, domains, window, advised.training),
        _examples(validation, codec, domains, window, advised.probing),
        config.sft,
        codec.copyable if isinstance(codec, CompactCodec) else (0, 1),
        seed,
        context.work / "checkpoints",
        record,
        context.progress,
        Arithmetic.of(config.agent),
        context.ranks,
    )
    rows = trainer.run()
    if context.ranks.leads:
        fold(model)
        _write(context, model, codec, policies, rows)
        timings.save({})
    last = rows[-1]
    figures = {k: last[k] for k in ("loss", "validation_loss")}
    return {f"sft/{k}": float(v) for k, v in figures.items() if isinstance(v, int | float)}


def _write(
    context: Context,
    model: Any,
    codec: Codec,
    policies: FoldedPolicies | None,
    rows: Sequence[Row],
) -> None:
    """Write all that a finished training leaves."""
    save_model(context.root / MODEL, model, codec)
    if policies is not None:
        policies.save(context.root / MODEL / TOOLS)
    provenance = {"stage": "sft", "dialogues": file_digest(context.root / DIALOGUES)}
    write_json(context.root / MODEL / "provenance.json", provenance)
    write_jsonl(context.root / METRICS, rows)


def dialogues_of(context: Context, split: Split, tasks: Sequence[Task]) -> list[Trajectory]:
    """The dialogues of a split; DataError where one is about no task of this split."""
    path = context.root / DIALOGUES / f"{split}.jsonl"
    dialogues, ids = read_trajectories(path), {task.id for task in tasks}
    for number, dialogue in enumerate(dialogues, start=1):
        if dialogue.task_id not in ids:
            raise DataError(
                f"{path}, line {number}: task {dialogue.task_id} is none of split {split!r}: "
                "only its own may be learned from. Run `progrl generate` again."
            )
    return dialogues


def _best(dialogues: list[Trajectory], config: Config) -> list[Trajectory]:
    """The successes of the highest reward (UserRL: ranked by quality); ties in file order.

    Domains have equal shares, or the one with the shortest dialogues would have most.
    """
    wins = [d for d in dialogues if d.valid and d.success]
    wins.sort(key=lambda d: -structured_reward(d, config.reward).total)
    chosen = in_turn(wins, lambda d: d.domain)[: config.sft.dialogues]
    if not chosen:
        raise DataError("There is no successful dialogue to learn from: run `progrl generate`.")
    return chosen


def agent_of(
    context: Context, dialogues: Sequence[Trajectory], domains: dict[str, Domain], seed: Seed
) -> tuple[Any, Codec]:
    """The model to start from and its codec: made from nothing, or the configured folder's."""
    agent = context.config.agent
    if not isinstance(agent, EmbeddedAgent):
        return load_trained(context.project / agent.folder, agent)
    tools = [tool for name in context.config.domains.train for tool in domains[name].tools]
    texts = [m.content for d in dialogues for m in d.history() if m.content]
    values = [
        str(value)
        for d in dialogues
        for m in d.history()
        if m.call is not None
        for value in m.call.arguments.values()
    ]
    codec = CompactCodec(train_tokenizer([*texts, *values], tools, agent.vocabulary))
    model = make_model(
        vocabulary=codec.size,
        hidden=agent.hidden,
        layers=agent.layers,
        heads=agent.heads,
        head_dim=agent.head_dim,
        ffn=agent.ffn,
        window=agent.window,
        copying=agent.copying,
        seed=seed.child("model").value,
    )
    return model, codec


def _advisors(context: Context, policies: FoldedPolicies | None, seed: Seed) -> Advisors:
    """Who gives hints on the dialogues; a bias is none."""
    config = context.config.orchestration
    if isinstance(config, BiasAdvice):
        return Advisors(None, None)
    orchestrator = Orchestrator(encoder_of(context)) if policies is not None else None
    return advisors(config, policies, orchestrator, seed)


def _examples(
    dialogues: Sequence[Trajectory],
    codec: Codec,
    domains: dict[str, Domain],
    window: int,
    advisor: Advisor | None,
) -> list[Example]:
    """Dialogues as ids and masks, laid out exactly as an episode's are; too long ones left out."""
    examples = [encode(d, codec, domains[d.domain], advisor) for d in dialogues]
    return [e for e in examples if len(e.ids) <= window]


def encode(
    dialogue: Trajectory, codec: Codec, domain: Domain, advisor: Advisor | None = None
) -> Example:
    """One dialogue: what the environment says is context, what the agent does is learned.

    Hints are context too; a bias is no part of a dialogue.
    """
    guide = advisor.guide(dialogue.task_id, dialogue.query) if advisor else None

    def hint() -> Hint:
        return guide.advise(domain.tools).hint if guide else ()

    ids = list(codec.open(domain.policy, domain.tools, dialogue.query, hint()))
    mask = [False] * len(ids)
    for turn in dialogue.turns:
        if turn.action is None:
            raise DataError(f"Dialogue of task {dialogue.task_id} has a turn without an action.")
        act = codec.act(turn.action)
        if guide is not None:
            guide.took(turn.action)
        ids += act
        mask += [True] * len(act)
        if turn.source:
            read = codec.observe(turn.answer(), hint=hint())
            ids += read
            mask += [False] * len(read)
    return Example(ids, mask)
