"""Stage `evaluate`: every agent on every benchmark, with the same tasks and users."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from progrl.agent.model import load_agent_folder
from progrl.agent.seats import Agent, DoNothingAgent, ExpertAgent, ModelAgent, RandomAgent
from progrl.config.models import Config
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory, read_trajectories, write_trajectories
from progrl.evaluation.examples import choose_examples
from progrl.evaluation.metrics import Result
from progrl.evaluation.protocol import Protocol, check_held_out
from progrl.evaluation.summary import Summariser, Summary, evaluation
from progrl.evaluation.sweep import PLAYED
from progrl.files import new_folder, write_json
from progrl.reporting.sources import EVALUATE as METRICS
from progrl.reporting.sources import KEPT, RESULTS
from progrl.rollout import Clock
from progrl.seeds import Seed
from progrl.stages.advice import advisor_of, compared
from progrl.stages.base import Context, Metrics, find_stage, input_hash
from progrl.stages.definitions import GRPO, SFT, UNTRAINED
from progrl.stages.parts import TASKS, USERS, Timings, engine_of, set_threads, tasks_of, world_of

ADVICE = "advice.json"
"""In the same folder: results with other advice on tools too, where there is any."""

MODELS = {"untrained": UNTRAINED, "sft": SFT, "grpo": GRPO}

ADVISED = "grpo"
"""The agent that is also played with other advice than the configured."""

Played = dict[str, dict[str, list[Trajectory]]]
Results = dict[str, dict[str, list[Result]]]


def run(context: Context) -> Metrics:
    """Write metrics/evaluate.json and, in evaluation/, results and examples of dialogues."""
    config = context.config
    set_threads(config, context.project)
    timings, clock = Timings(context.work), Clock()
    names = (*config.domains.train, *config.domains.held_out)
    benchmarks = {name: tasks_of(context, "test", (name,)) for name in names}
    training = [*tasks_of(context, "train"), *tasks_of(context, "validation")]
    check_held_out(training, benchmarks)
    world = world_of(context, config.evaluation.family, config.engine.slots)
    protocol = Protocol(world, config.evaluation, config.reward)
    played = _play(context, protocol, benchmarks, clock, timings)
    if not context.ranks.leads:
        return {}
    measured: Results = {
        name: {agent: protocol.results(benchmarks[name], t) for agent, t in agents.items()}
        for name, agents in played.items()
    }
    results: Results = {
        name: {agent: rows[agent] for agent in config.evaluation.agents}
        for name, rows in measured.items()
    }
    with clock.measure("statistics"):
        seed = Seed.root(config.seed).child("evaluate").child("bootstrap").value
        summarise = Summariser(config.evaluation.confidence, config.evaluation.bootstrap, seed)
        summaries = {name: summarise.benchmark(agents) for name, agents in results.items()}
    advice = _advice(config, summarise, measured)
    _write(context, played, results, measured if advice else {})
    held_out = config.domains.held_out
    tree = evaluation(summaries, config.evaluation, config.seed, held_out)
    write_json(context.root / METRICS, {**tree, **({"advice": advice} if advice else {})})
    timings.save(clock.seconds)
    return {**_figures(summaries), **_advice_figures(advice)}


def _play(
    context: Context,
    protocol: Protocol,
    benchmarks: Mapping[str, list[Task]],
    clock: Clock,
    timings: Timings,
) -> Played:
    """All trajectories; each pair of agent and benchmark is kept when done."""
    played: Played = {name: {} for name in benchmarks}
    trials, agents = protocol.config.trials, protocol.config.agents
    names = (*agents, *(f"{ADVISED}_{kind}" for kind in compared(context.config)))
    total = trials * len(names) * sum(map(len, benchmarks.values()))
    places = {
        (name, benchmark): folder / f"{benchmark}_{name}.jsonl"
        for name in names
        for folder in [_place(context, name)]
        for benchmark in benchmarks
    }
    # What the leading process has found holds for all, whoever writes meanwhile.
    (found, *_) = context.ranks.gather(bytes(path.exists() for path in places.values()))
    there = {place for place, is_there in zip(places, found, strict=True) if is_there}
    before = 0
    for name in names:
        agent: Agent | None = None
        for benchmark, tasks in benchmarks.items():
            kept = places[name, benchmark]
            if (name, benchmark) in there:
                played[benchmark][name] = read_trajectories(kept)
            else:
                agent = agent or _agent(context, name)
                if isinstance(agent, ModelAgent) and agent.advisor is not None:
                    agent.advisor.begin(Seed("advice"), [task.query for task in tasks])

                def told(done: int, text: str = f"{name} on {benchmark}", at: int = before) -> None:
                    context.progress(at + done, total, text)

                with clock.measure(f"play of {name}"):
                    played[benchmark][name] = protocol.play(tasks, agent, name, clock, told)
                if context.ranks.leads:
                    write_trajectories(kept, played[benchmark][name])
                    timings.save(clock.seconds)
            before += trials * len(tasks)
    return played


def _place(context: Context, name: str) -> Path:
    """Where an agent's episodes are kept: the stage's own folder, or the shared one, by digest of
    all that the agent's play follows from."""
    shared = context.root / PLAYED
    if name not in context.config.evaluation.agents or name == ADVISED or not shared.is_dir():
        return context.work / "played"
    models = [MODELS[name]] if name in MODELS else []
    play = replace(find_stage("evaluate"), inputs=(TASKS, USERS, *models))
    return shared / input_hash(play, context.config, context.root)


def _agent(context: Context, name: str) -> Agent:
    match name:
        case "do_nothing":
            return DoNothingAgent()
        case "random":
            return RandomAgent()
        case "expert":
            return ExpertAgent()
    which, _, kind = name.partition("_")
    folder, other = context.root / MODELS[which], compared(context.config).get(kind)
    model, codec = load_agent_folder(folder)
    engine = engine_of(context.config, model, context.project)
    advisor = advisor_of(context, folder, other) if which != "untrained" else None
    return ModelAgent(engine, codec, 0.0, context.config.engine.max_tokens, name, advisor)


def _advice(config: Config, summarise: Summariser, measured: Results) -> dict[str, Any] | None:
    """What the advice on tools is worth: the trained model with it, without, and with bad advice.

    None where there is no advice.
    """
    others = compared(config)
    if not others:
        return None
    benchmarks = {
        name: summarise.compared(
            {
                config.orchestration.kind: agents[ADVISED],
                **{kind: agents[f"{ADVISED}_{kind}"] for kind in others},
            }
        )
        for name, agents in measured.items()
    }
    return {"kind": config.orchestration.kind, "agent": ADVISED, "benchmarks": benchmarks}


def _advice_figures(advice: Mapping[str, Any] | None) -> dict[str, float]:
    """The differences that are defined."""
    return {
        f"evaluate/{name}/{key}": float(value["mean"])
        for name, summary in (advice["benchmarks"] if advice else {}).items()
        for key, value in summary.items()
        if key != "agents" and value["mean"] is not None
    }


def _write(context: Context, played: Played, results: Results, measured: Results) -> None:
    """Write the folder; of `measured`, if it holds anything, the results with other advice too."""
    with new_folder(context.root / KEPT) as folder:
        write_json(folder / Path(RESULTS).name, _rows(results))
        if measured:
            write_json(folder / ADVICE, _rows(measured))
        for name, of in results.items():
            chosen = choose_examples(of["sft"], of["grpo"], context.config.evaluation.examples)
            for agent in of:
                trajectories = played[name][agent]
                first = {t.task_id: t for t in trajectories if t.tags["trial"] == 0}
                examples = [first[task] for task in chosen]
                write_trajectories(folder / f"{name}_{agent}.jsonl", examples)


def _rows(results: Results) -> dict[str, Any]:
    return {
        name: {agent: [row.to_json() for row in rows] for agent, rows in agents.items()}
        for name, agents in results.items()
    }


def _figures(summaries: Mapping[str, Summary]) -> dict[str, float]:
    """The headline figures that are defined."""
    figures: dict[str, float | None] = {}
    for name, summary in summaries.items():
        for agent, metrics in summary["agents"].items():
            for metric in ("success", "reward", "turns"):
                figures[f"evaluate/{name}/{agent}/{metric}"] = metrics[metric]["mean"]
        for bound in ("mean", "low", "high"):
            figures[f"evaluate/{name}/grpo_minus_sft/{bound}"] = summary["grpo_minus_sft"][bound]
    return {key: value for key, value in figures.items() if value is not None}
