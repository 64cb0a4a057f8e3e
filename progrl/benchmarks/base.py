"""What the adapters share: nobody to talk to, gold actions that stand in the task, bounds."""

import contextlib
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from random import Random
from types import FrameType
from typing import Any, Protocol, TypeVar

from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Milestone, Split, Task, content_hash
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import State, StepResult
from progrl.errors import EnvironmentFault, MalformedAction
from progrl.seeds import Seed

SOLVED = (Milestone("solved", 1.0),)
CALL_SECONDS = 20.0
"""Processor seconds that one call of a benchmark's own code may take."""


class Silent:
    """Users of a benchmark without any: they say nothing."""

    name: str

    def user_view(self, task: Task) -> UserView:
        """Nothing is known beyond the opening words."""
        return UserView(self.name, task.query, (), (), task.seed)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """No words."""
        return UserReply("", "none")


class Game(ABC):
    """One episode that is solved or not, in which calls do all; subclasses keep the two flags."""

    reward_bounds: tuple[float, float] = (0.0, 0.0)
    _solved = _ended = False

    def step(self, action: Action) -> StepResult:
        """Apply a call, or take words; nothing happens after the end."""
        if self._ended:
            return StepResult("error: the task has ended", failed=True)
        return self._call(action) if isinstance(action, ToolCall) else self._say(action)

    @abstractmethod
    def _call(self, call: ToolCall) -> StepResult:
        """Apply a call."""

    def _say(self, words: Say) -> StepResult:
        """Words change nothing."""
        return StepResult()

    def hear(self, reply: UserReply) -> StepResult:
        """Nobody speaks."""
        return StepResult()

    def outcome(self) -> Outcome:
        """Whether it was solved."""
        done = float(self._solved)
        return Outcome(self._solved, done, ("solved",) * self._solved, True, done)


def check_call(call: ToolCall, tools: Sequence[ToolSpec]) -> None:
    """Raise MalformedAction unless it is a call of one of the tools that fits its schema."""
    spec = next((spec for spec in tools if spec.name == call.name), None)
    if spec is None:
        raise MalformedAction(f"unknown tool {call.name}")
    spec.check(call.arguments)


class GoldExpert:
    """Does what the task's `goal["gold"]` says, one action after the other, then closes."""

    def next_action(self, state: State) -> Action:
        """The action that follows those in the history."""
        done = sum(message.role == "assistant" for message in state.history)
        gold = state.task.goal["gold"]
        return action_of(gold[done]) if done < len(gold) else Say("done", closing=True)


def action_of(written: Mapping[str, Any]) -> Action:
    """An action from its JSON: `{"call": name, "arguments": {}}`, or `{"say": words}`."""
    if "call" in written:
        return ToolCall(written["call"], written["arguments"])
    return Say(written["say"])


def tool(name: str, description: str, /, **properties: Mapping[str, Any]) -> ToolSpec:
    """A tool whose arguments are all required; each is given by its JSON schema."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema)


def task(
    domain: str,
    family: str,
    level: int,
    query: str,
    goal: Mapping[str, Any],
    setup: Mapping[str, Any],
    expert_turns: int,
) -> Task:
    """A task that is solved or not, whose id and seed follow from its content."""
    hash_ = content_hash(domain, query, goal, setup, {})
    seed = Seed(f"benchmark={domain}").child("task", hash_).value
    return Task(
        f"{domain}-{hash_[:16]}",
        domain,
        family,
        level,
        query,
        goal,
        setup,
        {},
        SOLVED,
        expert_turns,
        seed,
    )


def numbers(split: Split, seed: int, tests: int) -> Iterable[int]:
    """What generated tasks are made from: the first `tests` numbers, those of test, or others
    without end, for each split and seed."""
    match split:
        case "test":
            return range(tests)
        case "validation":
            return count(10_000 + seed % 900 * 1000)
        case "train":
            return count(1_000_000 + seed % 900 * 1_000_000)


class Standing(Protocol):
    """A program that is started once and then serves all."""

    @property
    def ours(self) -> bool:
        """Whether it runs, and this very process has started it."""
        ...


S = TypeVar("S", bound=Standing)


def standing(start: Callable[[], S]) -> Callable[[], S]:
    """Gives the one program, started when it is first asked for, and again where it has ended."""
    kept: list[S] = []

    def get() -> S:
        if not (kept and kept[0].ours):
            kept[:] = [start()]
        return kept[0]

    return get


@contextlib.contextmanager
def bounded(what: str, seconds: float = CALL_SECONDS) -> Iterator[None]:
    """Stop the block's Python code after `seconds` of processor time; in the main thread alone.

    Processor time, so that a busy machine changes no result.

    Raises:
        EnvironmentFault: it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise EnvironmentFault(f"{what} took more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
