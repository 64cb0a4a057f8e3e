"""`progrl view`: trajectories as a person reads them."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from progrl.cli.command import Result, Shared, command
from progrl.dialogue.messages import Action, Say
from progrl.dialogue.trajectories import Trajectory, Turn, read_trajectories, record
from progrl.errors import DataError

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
Words = Callable[[Sequence[int]], str]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(
        app,
        "view",
        "view evaluation/retail_grpo.jsonl",
        "view evaluation/retail_grpo.jsonl --index 0 --tokens",
        panel="Episodes",
        configured=False,
    )(view)


def view(
    shared: Shared,
    file: Annotated[Path, typer.Argument(help="Trajectories (.jsonl, .safetensors beside it).")],
    index: Annotated[int | None, typer.Option(min=0, help="Which one, from 0.")] = None,
    task: Annotated[str | None, typer.Option(help="That of a task, by its id.")] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Show what was sampled.")] = False,
    model: Annotated[
        Path | None, typer.Option(help="Model folder whose tokenizer gives --tokens words.")
    ] = None,
) -> Result:
    """Show one trajectory, or list those of a file that has several."""
    if not file.exists():
        raise DataError(f"{file}: no such file. Stage evaluate and `progrl rollout` write some.")
    trajectories = read_trajectories(file)
    at = _choose(trajectories, file, index, task)
    if at is None:
        listed = [_summary(i, t) for i, t in enumerate(trajectories)]
        return Result(listed, _table(trajectories))
    chosen = trajectories[at]
    words = _words(model) if model is not None else None
    return Result(record(chosen), rendered(chosen, tokens or model is not None, words))


def rendered(
    trajectory: Trajectory, tokens: bool = False, words: Words | None = None
) -> RenderableType:
    """A trajectory as text: what it was about, every turn, how it ended.

    Args:
        tokens: with the ids that were sampled and their log-probabilities.
        words: the text of ids, to stand for them.
    """
    parts: list[RenderableType] = [_title(trajectory), spoken("user", trajectory.query)]
    for turn in trajectory.turns:
        parts += _turn(turn, tokens, words)
    return Group(*parts, Text(), verdict(trajectory))


def spoken(role: str, text: str, note: str = "") -> Text:
    """One entry of a conversation, its speaker before it; no text commands the terminal."""
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
    style = {"user": "green", "agent": "cyan", "tool": "magenta"}.get(role, "")
    line = Text.assemble((f"{role + ':':<7}", f"bold {style}"), text)
    if note:
        line.append(f"  [{note}]", "dim")
    return line


def said(action: Action | None, text: str) -> Text:
    """The agent's side of a turn."""
    if action is None:
        return spoken("agent", text, "no valid action")
    if isinstance(action, Say):
        return spoken("agent", action.text, "closes" if action.closing else "")
    return spoken("agent", f"-> {action}")


def verdict(trajectory: Trajectory) -> Text:
    """How an episode ended, in a line."""
    parts = [f"{trajectory.end.value} after {len(trajectory.turns)} turns"]
    parts.append(f"expert: {trajectory.expert_turns}")
    if outcome := trajectory.outcome:
        parts.append("success" if trajectory.success else "no success")
        parts.append(f"progress {outcome.progress:.2f}")
        parts.append("policy kept" if outcome.policy_kept else "policy broken")
        if outcome.milestones:
            parts.append(f"milestones: {', '.join(outcome.milestones)}")
    if trajectory.fault:
        parts.append(f"fault: {trajectory.fault}")
    return Text("; ".join(parts), "bold green" if trajectory.success else "bold yellow")


def _title(trajectory: Trajectory) -> Text:
    tags = ", ".join(f"{k} {v}" for k, v in sorted(trajectory.tags.items()))
    about = (
        f"{trajectory.task_id}: {trajectory.family}, level {trajectory.level}, "
        f"horizon {trajectory.horizon}"
    )
    return Text(about + (f" ({tags})" if tags else ""), "bold")


def _turn(turn: Turn, tokens: bool, words: Words | None) -> list[Text]:
    lines = [said(turn.action, turn.text)]
    if tokens:
        lines.append(_sampled(turn, words))
    if turn.source:
        notes = [turn.act, "failed" if turn.failed else "", ", ".join(turn.milestones)]
        lines.append(spoken(turn.source, turn.observation, "; ".join(filter(None, notes))))
    return lines


def _sampled(turn: Turn, words: Words | None) -> Text:
    read = f"read {len(turn.context)}, sampled {len(turn.sampled)}:"
    logprobs = turn.logprobs if len(turn.logprobs) else [0.0] * len(turn.sampled)
    shown = [
        f"{words([token])!r}({logprob:.2f})" if words else f"{token}({logprob:.2f})"
        for token, logprob in zip(turn.sampled, logprobs, strict=True)
    ]
    return Text(" ".join([" " * 6, read, *shown]), "dim")


def _choose(
    trajectories: Sequence[Trajectory], file: Path, index: int | None, task: str | None
) -> int | None:
    if task is not None:
        found = [i for i, t in enumerate(trajectories) if t.task_id == task]
        if not found:
            raise DataError(
                f"{file}: no trajectory of task {task}; `progrl view {file}` lists all."
            )
        return found[0]
    if index is not None and index >= len(trajectories):
        raise DataError(f"{file}: has {len(trajectories)} trajectories, counted from 0.")
    return 0 if index is None and len(trajectories) == 1 else index


def _summary(index: int, trajectory: Trajectory) -> dict[str, object]:
    return {
        "index": index,
        "task": trajectory.task_id,
        "family": trajectory.family,
        "level": trajectory.level,
        "turns": len(trajectory.turns),
        "end": trajectory.end.value,
        "success": trajectory.success,
    }


def _table(trajectories: Sequence[Trajectory]) -> Table:
    table = Table("index", "task", "family", "level", "turns", "end", "success", box=None)
    for i, trajectory in enumerate(trajectories):
        table.add_row(*map(str, _summary(i, trajectory).values()))
    return table


def _words(folder: Path) -> Words:
    from progrl.agent.model import load_codec

    return load_codec(folder).text
