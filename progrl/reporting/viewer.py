"""A trajectory as the entries of a conversation, for whatever shows it to people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import End, Trajectory, Turn

Kind = Literal["user", "say", "call", "broken", "result"]
ENDS = {
    End.CLOSED: "the agent closed the conversation",
    End.LEFT: "the user left",
    End.DONE: "the environment reached its end",
    End.HORIZON: "the turns were used up",
    End.WINDOW: "the agent's window was full",
    End.FAULT: "lost to a fault",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One message, as shown.

    Attributes:
        kind: whose and what: "user", "say", "call", "broken" (no valid action), "result".
        text: the words, the tool's name, the raw text or the tool's result.
        arguments: of a call, as they are shown.
        notes: dialogue act, milestones, failure, closing.
        failed: the action led to an error.
    """

    kind: Kind
    text: str
    arguments: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    failed: bool = False


def entries(trajectory: Trajectory) -> list[Entry]:
    """All messages in order, the opening query first."""
    shown = [Entry("user", trajectory.query)]
    for turn in trajectory.turns:
        shown.append(_action(turn))
        if turn.source == "tool":
            shown.append(Entry("result", turn.observation, failed=turn.failed))
        elif turn.source == "user":
            notes = (turn.act.replace("_", " "),) if turn.act else ()
            shown.append(Entry("user", turn.observation, notes=notes))
    return shown


def _action(turn: Turn) -> Entry:
    notes = tuple(f"✓ {name.replace('_', ' ')}" for name in turn.milestones)
    match turn.action:
        case ToolCall(name, arguments):
            written = tuple((key, f"{value}") for key, value in arguments.items())
            return Entry("call", name, written, notes, turn.failed)
        case Say(text, closing):
            return Entry("say", text, notes=(*notes, *(("closes",) if closing else ())))
        case None:
            return Entry("broken", turn.text, notes=notes, failed=True)


def ending(trajectory: Trajectory) -> str:
    """How the episode ended, in words."""
    words = f"After {len(trajectory.turns)} turns {ENDS[trajectory.end]}"
    return f"{words}: {trajectory.fault}." if trajectory.fault else f"{words}."


@dataclass(frozen=True, slots=True)
class Side:
    """One agent's dialogue, ready to be shown."""

    agent: str
    success: bool
    entries: Sequence[Entry]
    ending: str


def side_of(agent: str, trajectory: Trajectory) -> Side:
    """An agent's dialogue."""
    return Side(agent, trajectory.success, entries(trajectory), ending(trajectory))
