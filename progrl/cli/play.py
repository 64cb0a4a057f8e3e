"""`progrl play`: a person at the terminal is the user, or the agent."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from progrl.cli.command import Result, Shared, command
from progrl.cli.episodes import (
    PANEL,
    Horizon,
    Root,
    Seat,
    SeedOption,
    SplitName,
    agent_of,
    domain_of,
    find_task,
    root_seed,
    tasks_of,
    user_of,
)
from progrl.cli.output import printer
from progrl.cli.stages import stay_local
from progrl.cli.view import rendered, spoken, verdict
from progrl.config import Config
from progrl.dialogue.messages import Message, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import UserView
from progrl.errors import ConfigurationError
from progrl.seeds import Seed
from progrl.users.contracts import UserSimulator
from progrl.users.human import Goal, HumanUser, brief

if TYPE_CHECKING:
    from progrl.agent.seats import Agent
    from progrl.rollout import EpisodeSpec

Role = Literal["user", "agent"]

TO_USER = "You are the user. Type what you say; /quit ends the game."
TO_AGENT = (
    "You are the agent. Type what you say to the user; /call tool key=value calls a tool, "
    "/tools lists them, /close words ends the conversation, /quit ends the game."
)


class Quit(BaseException):
    """The person ends the game; no fault of an episode, so nothing that episodes catch."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(
        app, "play", "play retail --as agent", "play retail --as user --agent expert", panel=PANEL
    )(play)


def play(
    shared: Shared,
    environment: Annotated[str, typer.Argument(help="A domain.")],
    role: Annotated[Role, typer.Option("--as", help="Who you are.")] = "agent",
    agent: Seat = "expert",
    task: Annotated[str | None, typer.Option(help="Its id; else the first of the split.")] = None,
    split: SplitName = "validation",
    seed: SeedOption = None,
    horizon: Horizon = None,
    root: Root = Path(),
) -> Result:
    """Play one episode yourself."""
    from progrl.agent.seats import HumanAgent
    from progrl.rollout import Clock
    from progrl.rollout import play as play_episode

    config = shared.config()
    stay_local(config)
    node = root_seed(config, seed)
    domain = domain_of(config, environment)
    chosen = find_task(domain, node, task, root) if task else next(tasks_of(domain, split, node))
    spec = spec_of(config, node, chosen, role, agent, horizon)
    seat: Agent
    user: UserSimulator
    if role == "agent":
        seat = HumanAgent(AskAgent())
        user = user_of(shared, config, environment, root, node)
        show(Text(TO_AGENT, "italic"), Text(domain.policy, "dim"))
    else:
        view = domain.user_view(chosen)
        if not (view.facts or view.wishes):
            raise ConfigurationError(
                f"{environment} asks its user nothing, so there is nothing to play: use --as agent."
            )
        seat, user = agent_of(shared, config, agent, 0.0), HumanUser(AskUser(view))
        show(Text(TO_USER, "italic"), *briefing(view), spoken("user", chosen.query))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        trajectory = asyncio.run(play_episode(spec, domain, seat, user, Clock()))
    except Quit:
        return Result({"quit": True}, "Ended.")
    shown = verdict(trajectory) if role == "agent" else rendered(trajectory)
    return Result({"success": trajectory.success, "turns": len(trajectory.turns)}, shown)


def spec_of(
    config: Config, node: Seed, task: Task, role: Role, agent: str, horizon: int | None
) -> "EpisodeSpec":
    """The episode of a person who is `role`, against `agent` where that is the user."""
    from progrl.rollout import EpisodeSpec
    from progrl.users.profiles import draw

    place = node.child("play").child("task", task.id)
    return EpisodeSpec(
        task,
        place.child("agent"),
        place.child("user").value,
        horizon or config.evaluation.horizon,
        draw(config.user.family, place.child("user")),
        {"agent": "human" if role == "agent" else agent, "person": role},
    )


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Python would wait for the thread that waits for the person's line."""
    word = "Interrupted." if number == signal.SIGINT else "Terminated."
    sys.stderr.write(f"\n{word}\n")
    sys.stderr.flush()
    os._exit(128 + number)


def show(*lines: Text) -> None:
    """Print for the person who plays."""
    for line in lines:
        printer().print(line)


def ask(prompt: str) -> str:
    """A line of the person's that is not empty; raises Quit on /quit and at the end of input."""
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            raise Quit from None
        if line == "/quit":
            raise Quit
        if line:
            return line


def briefing(view: UserView) -> list[Text]:
    """What a person must know to be this user, for the terminal."""
    told = brief(view)
    lines = [Text("What you want:", "bold")]
    lines += [Text(f"  {wish}") for wish in told.wishes]
    lines.append(Text("What you know, and tell when asked:", "bold"))
    lines += [Text(f"  {label}: {value}") for label, value in told.facts]
    return lines


class AskUser:
    """Shows a person who is the user what the agent said, and asks for the answer."""

    def __init__(self, view: UserView) -> None:
        self._goal = Goal(view)

    async def __call__(self, said: str) -> str:
        """The person's line; tells of the change of the goal where it is due."""
        show(spoken("agent", said))
        if change := self._goal.turn():
            show(Text(f"You change your mind. Say, in your words: {change}", "bold red"))
            show(*briefing(self._goal.view))
        return await asyncio.to_thread(ask, "you:   ")


class AskAgent:
    """Shows a person who is the agent what came back, and asks for the next line."""

    async def __call__(self, history: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
        """The person's line; /tools is answered here."""
        last = history[-1]
        show(spoken("tool" if last.role == "tool" else "user", last.content))
        while (line := await asyncio.to_thread(ask, "you:   ")) == "/tools":
            show(*map(described, tools))
        return line


def described(tool: ToolSpec) -> Text:
    """A tool in a line or two."""
    fields = tool.parameters.get("properties", {})
    needed = set(tool.parameters.get("required", ()))
    arguments = " ".join(name if name in needed else f"[{name}]" for name in fields)
    note = " (writes)" if tool.writes else ""
    return Text.assemble((f"{tool.name} {arguments}", "bold"), f"{note}: {tool.description}")
