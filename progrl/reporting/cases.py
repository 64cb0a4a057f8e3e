"""Three case studies, chosen by rule from the evaluation's episodes and its kept dialogues."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from progrl.dialogue.messages import ToolCall
from progrl.dialogue.trajectories import Trajectory
from progrl.evaluation.metrics import Result
from progrl.reporting.material import Material
from progrl.reporting.paper import NOT_MEASURED, Comparison, direction, paper, shown
from progrl.reporting.tables import UNDEFINED, agent_name, number, retained
from progrl.reporting.viewer import Side, side_of

STUDIED, BEFORE = "grpo", "sft"
NO_DIALOGUE = "No kept dialogue fits the rule; the numbers are of all episodes."


@dataclass(frozen=True, slots=True)
class Case:
    """A section of the case studies.

    Attributes:
        rule: by which the dialogue was chosen.
        head, rows: the numbers that go with it.
        told: about the dialogue, in words.
        side: the dialogue; None where no kept one fits the rule.
        comparisons: the paper's figures beside ours.
    """

    title: str
    rule: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    told: str = NO_DIALOGUE
    side: Side | None = None
    comparisons: Sequence[Comparison] = field(default_factory=tuple)


def case_studies(material: Material) -> list[Case]:
    """A changed goal that was met, tools by the kind of query, a failure that was overcome."""
    return [_goal_change(material), _strategy(material), _failure(material)]


def _goal_change(material: Material) -> Case:
    def told(benchmark: str, trajectory: Trajectory) -> str | None:
        turn = _first(trajectory, lambda t, i: t.turns[i].act == "change_goal")
        if turn is None or not trajectory.success:
            return None
        return (
            f"{_named(benchmark, trajectory)}: the user changes the goal in reply to turn "
            f"{turn + 1}, and {len(trajectory.turns) - turn - 1} turns later the new one is met."
        )

    return Case(
        "A goal that changed and was met",
        "The first kept dialogue of the trained agent, in the order of benchmarks and tasks, that "
        "has a change of goal and ends in success.",
        *_scheduled(material, lambda r: r.goal_change),
        comparisons=_long(material),
        **_dialogue(material, told),
    )


def _failure(material: Material) -> Case:
    def told(benchmark: str, trajectory: Trajectory) -> str | None:
        turn = _first(trajectory, _failed)
        injected = _result(material, benchmark, trajectory)
        if turn is None or injected is None or not injected.tool_failure or not trajectory.success:
            return None
        later = range(turn + 1, len(trajectory.turns))
        again = next((i for i in later if _worked(trajectory, i)), None)
        if again is None:
            return None
        return (
            f"{_named(benchmark, trajectory)}: the call of turn {turn + 1} fails, that of turn "
            f"{again + 1} goes well, and the goal is met after {len(trajectory.turns)} turns."
        )

    return Case(
        "A failure that was injected and overcome",
        "The first kept dialogue of the trained agent whose task schedules a failure of a tool, in "
        "which a call fails, a later one goes well, and the goal is met.",
        *_scheduled(material, lambda r: r.tool_failure),
        comparisons=[_recovery(material)],
        **_dialogue(material, told),
    )


def _strategy(material: Material) -> Case:
    solved = [(b, t) for b, t in _kept(material) if t.success]
    found: dict[str, Any] = {}
    if solved:
        benchmark, trajectory = max(solved, key=lambda one: len(set(_tools(one[1]))))
        sequence = " → ".join(_tools(trajectory)) or "no call"
        told = f"{_named(benchmark, trajectory)}: {sequence}."
        found = {"told": told, "side": side_of(STUDIED, trajectory)}
    rows = [
        [f"{benchmark}: {family.replace('_', ' ')}", *_family(rows, _experts(agents))]
        for benchmark, agents in material.results.items()
        for family, rows in _families(agents.get(STUDIED, ())).items()
    ]
    return Case(
        "Which tools for which query",
        "Of all episodes of the trained agent, by task family: the commonest sequence of calls. "
        "The dialogue is the kept and solved one with the most different tools, the first of such.",
        ("query", "episodes", "success", "commonest sequence", "share", "calls", "expert's calls"),
        rows,
        comparisons=_tool_figures(material),
        **found,
    )


def _dialogue(material: Material, told: Callable[[str, Trajectory], str | None]) -> dict[str, Any]:
    """The first kept dialogue of which there is something to tell, and that; none otherwise."""
    for benchmark, trajectory in _kept(material):
        text = told(benchmark, trajectory)
        if text is not None:
            return {"told": text, "side": side_of(STUDIED, trajectory)}
    return {}


def _kept(material: Material) -> Iterator[tuple[str, Trajectory]]:
    for benchmark in material.evaluate["benchmarks"]:
        for trajectory in material.examples.get(benchmark, {}).get(STUDIED, ()):
            yield benchmark, trajectory


def _named(benchmark: str, trajectory: Trajectory) -> str:
    family = trajectory.family.replace("_", " ")
    return f"{benchmark}, {family}, level {trajectory.level}, {trajectory.task_id}"


def _first(trajectory: Trajectory, fits: Callable[[Trajectory, int], bool]) -> int | None:
    return next((i for i in range(len(trajectory.turns)) if fits(trajectory, i)), None)


def _failed(trajectory: Trajectory, at: int) -> bool:
    turn = trajectory.turns[at]
    return isinstance(turn.action, ToolCall) and turn.failed


def _worked(trajectory: Trajectory, at: int) -> bool:
    turn = trajectory.turns[at]
    return isinstance(turn.action, ToolCall) and not turn.failed


def _tools(trajectory: Trajectory) -> list[str]:
    return [t.action.name for t in trajectory.turns if isinstance(t.action, ToolCall)]


def _result(material: Material, benchmark: str, trajectory: Trajectory) -> Result | None:
    rows = material.results.get(benchmark, {}).get(STUDIED, ())
    trial = trajectory.tags.get("trial", 0)
    return next((r for r in rows if (r.task, r.trial) == (trajectory.task_id, trial)), None)


def _scheduled(
    material: Material, scheduled: Callable[[Result], bool]
) -> tuple[Sequence[str], list[list[str]]]:
    """Head and rows: success with and without what the task had scheduled, by agent."""
    rows = []
    for benchmark, agents in material.results.items():
        for agent in (BEFORE, STUDIED):
            valid = [r for r in agents.get(agent, ()) if r.valid]
            with_it, without = (
                [r for r in valid if scheduled(r) is wanted] for wanted in (True, False)
            )
            if valid:
                cells = [_rate(with_it), str(len(with_it)), _rate(without), str(len(without))]
                rows.append([f"{benchmark}: {agent_name(agent)}", *cells, _turns(with_it)])
    head = ("agent", "success with it", "episodes", "success without", "episodes", "turns with it")
    return head, rows


def _rate(results: Sequence[Result]) -> str:
    return number(fmean(bool(r.success) for r in results) if results else None)


def _turns(results: Sequence[Result]) -> str:
    return number(fmean(r.turns or 0 for r in results) if results else None, 1)


def _families(results: Sequence[Result]) -> dict[str, list[Result]]:
    families: dict[str, list[Result]] = {}
    for result in results:
        if result.valid and result.tools is not None:
            families.setdefault(result.family, []).append(result)
    return dict(sorted(families.items()))


def _experts(agents: Mapping[str, Sequence[Result]]) -> dict[str, int]:
    return {r.task: r.tool_calls or 0 for r in agents.get("expert", ()) if r.valid}


def _family(results: Sequence[Result], experts: Mapping[str, int]) -> list[str]:
    counts = Counter(result.tools or () for result in results)
    sequence, times = min(counts.items(), key=lambda item: (-item[1], item[0]))
    best = [experts[r.task] for r in results if r.task in experts]
    return [
        str(len(results)),
        _rate(results),
        " → ".join(sequence) or "no call",
        f"{times / len(results):.0%}",
        number(fmean(r.tool_calls or 0 for r in results), 1),
        number(fmean(best) if best else None, 1),
    ]


def _tool_figures(material: Material) -> list[Comparison]:
    stated = paper()["case_studies"]
    part = next(iter(material.headline["benchmarks"].values()))
    pair = part.get("tool_efficiency", {}).get("grpo_minus_sft", {})
    own, before = pair.get(STUDIED), pair.get(BEFORE)
    difference = None
    if own and before and own["mean"] is not None and before["mean"] is not None:
        difference = {"mean": own["mean"] - before["mean"], "low": None, "high": None}
    kept = material.headline.get("retention") or {}
    held_out: Mapping[str, Any] = next(iter(kept.values()), {}) or {}
    told = held_out.get(STUDIED)
    efficiency = stated["tool_efficiency"]
    return [
        Comparison(
            "tool efficiency, learned against random; ours: GRPO against SFT",
            f"{efficiency['learned']}% against {efficiency['random']}%",
            f"{shown(own)} against {shown(before)}",
            direction(efficiency["learned"] - efficiency["random"], difference),
        ),
        Comparison(
            "consistency of tools within similar queries",
            f"{stated['pattern_consistency']}%",
            shown(part["agents"][STUDIED].get("tool_consistency")),
            "no comparison given",
        ),
        Comparison(
            "retention on a domain never trained on",
            f"{stated['transfer_retention']}%",
            NOT_MEASURED if told is None else retained(told),
            "no comparison given",
        ),
    ]


def _recovery(material: Material) -> Comparison:
    stated = paper()["case_studies"]["recovery_improvement"]
    agents = next(iter(material.headline["benchmarks"].values()))["agents"]
    own, before = (agents[agent].get("recovery") for agent in (STUDIED, BEFORE))
    difference = None
    if own and before and own["mean"] is not None and before["mean"] is not None:
        difference = {"mean": own["mean"] - before["mean"], "low": None, "high": None}
    return Comparison(
        "recovery; ours: success after a tool failure, SFT → GRPO",
        f"improved by {stated}%",
        f"{shown(before)} → {shown(own)}",
        direction(stated, difference),
    )


def _long(material: Material) -> list[Comparison]:
    stated = paper()["case_studies"]
    rows = next(iter(material.results.values()), {}).get(STUDIED, ())
    known = [
        r.satisfaction
        for r in rows
        if r.satisfaction is not None and (r.turns or 0) >= stated["turns"]
    ]
    ours = f"{fmean(known):.2f} over {len(known)} episodes" if known else UNDEFINED
    return [
        Comparison(
            f"satisfaction in dialogues of {stated['turns']} turns or more",
            f"{stated['satisfaction_long_dialogue']}%",
            ours,
            "no comparison given",
        )
    ]
