"""Stage `evaluate`: every agent on every benchmark, with the same tasks and users."""

from collections.abc import Mapping
from pathlib import Path

from progrl.agent.model import load_agent_folder
from progrl.agent.seats import Agent, DoNothingAgent, ExpertAgent, ModelAgent
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory, read_trajectories, write_trajectories
from progrl.evaluation.examples import choose_examples
from progrl.evaluation.metrics import Result
from progrl.evaluation.protocol import AGENTS, Protocol, check_held_out
from progrl.evaluation.summary import Summariser, Summary, evaluation
from progrl.files import new_folder, write_json
from progrl.rollout import Clock
from progrl.seeds import Seed
from progrl.stages.base import Context, Metrics, Stage
from progrl.stages.grpo import MODEL as GRPO
from progrl.stages.parts import TASKS, USERS, Timings, engine_of, set_threads, tasks_of, world_of
from progrl.stages.sft import MODEL as SFT
from progrl.stages.sft import UNTRAINED

METRICS, KEPT = "metrics/evaluate.json", "evaluation"
RESULTS = f"{KEPT}/results.json"
MODELS = {"untrained": UNTRAINED, "sft": SFT, "grpo": GRPO}

Played = dict[str, dict[str, list[Trajectory]]]
Results = dict[str, dict[str, list[Result]]]


def run(context: Context) -> Metrics:
    """Write metrics/evaluate.json and, in evaluation/, results and examples of dialogues."""
    config = context.config
    set_threads(config)
    timings, clock = Timings(context.work), Clock()
    names = (*config.domains.train, *config.domains.held_out)
    benchmarks = {name: tasks_of(context, "test", (name,)) for name in names}
    training = [*tasks_of(context, "train"), *tasks_of(context, "validation")]
    check_held_out(training, benchmarks)
    world = world_of(context, config.evaluation.family, config.engine.slots)
    protocol = Protocol(world, config.evaluation, config.reward)
    played = _play(context, protocol, benchmarks, clock, timings)
    results: Results = {
        name: {agent: protocol.results(benchmarks[name], t) for agent, t in agents.items()}
        for name, agents in played.items()
    }
    with clock.measure("statistics"):
        seed = Seed.root(config.seed).child("evaluate").child("bootstrap").value
        summarise = Summariser(config.evaluation.confidence, config.evaluation.bootstrap, seed)
        summaries = {name: summarise.benchmark(agents) for name, agents in results.items()}
    _write(context, played, results)
    held_out = config.domains.held_out
    tree = evaluation(summaries, config.evaluation, config.seed, held_out)
    write_json(context.root / METRICS, tree)
    timings.save(clock.seconds)
    return _figures(summaries)


def _play(
    context: Context,
    protocol: Protocol,
    benchmarks: Mapping[str, list[Task]],
    clock: Clock,
    timings: Timings,
) -> Played:
    """All trajectories; each pair of agent and benchmark is kept in the work folder when done."""
    played: Played = {name: {} for name in benchmarks}
    trials = protocol.config.trials
    total = trials * len(AGENTS) * sum(map(len, benchmarks.values()))
    before = 0
    for name in AGENTS:
        agent: Agent | None = None
        for benchmark, tasks in benchmarks.items():
            kept = context.work / "played" / f"{benchmark}_{name}.jsonl"
            if kept.exists():
                played[benchmark][name] = read_trajectories(kept)
            else:
                agent = agent or _agent(context, name)

                def told(done: int, text: str = f"{name} on {benchmark}", at: int = before) -> None:
                    context.progress(at + done, total, text)

                with clock.measure(f"play of {name}"):
                    played[benchmark][name] = protocol.play(tasks, agent, name, clock, told)
                write_trajectories(kept, played[benchmark][name])
                timings.save(clock.seconds)
            before += trials * len(tasks)
    return played


def _agent(context: Context, name: str) -> Agent:
    match name:
        case "do_nothing":
            return DoNothingAgent()
        case "expert":
            return ExpertAgent()
    model, codec = load_agent_folder(context.root / MODELS[name])
    engine = engine_of(context.config, model)
    return ModelAgent(engine, codec, 0.0, context.config.engine.max_tokens, name)


def _write(context: Context, played: Played, results: Results) -> None:
    with new_folder(context.root / KEPT) as folder:
        rows = {
            name: {agent: [row.to_json() for row in rows] for agent, rows in agents.items()}
            for name, agents in results.items()
        }
        write_json(folder / Path(RESULTS).name, rows)
        for name, agents in played.items():
            of = results[name]
            chosen = choose_examples(of["sft"], of["grpo"], context.config.evaluation.examples)
            for agent, trajectories in agents.items():
                first = {t.task_id: t for t in trajectories if t.tags["trial"] == 0}
                examples = [first[task] for task in chosen]
                write_trajectories(folder / f"{name}_{agent}.jsonl", examples)


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


STAGE = Stage(
    name="evaluate",
    sections=("seed", "domains", "agent", "engine", "reward", "evaluation", "threads"),
    inputs=(TASKS, USERS, UNTRAINED, SFT, GRPO),
    outputs=(METRICS, KEPT),
    packages=(
        "agent",
        "config",
        "dialogue",
        "environments",
        "evaluation",
        "rewards",
        "rollout",
        "stages/base.py",
        "stages/evaluate.py",
        "stages/parts.py",
        "users",
    ),
    run=run,
)
