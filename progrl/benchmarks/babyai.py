"""BabyAI: instructions in a grid world, seen and told in words (package `minigrid`).

The package shows an agent the cells in front of it; the words here say the same. Its bot is the
expert.
"""

import contextlib
import io
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from progrl.benchmarks.base import Game, Silent, bounded, numbers, task, tool
from progrl.benchmarks.registry import find
from progrl.dialogue.messages import Action, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.environments.contracts import State, StepResult
from progrl.errors import EnvironmentFault

Level = Literal[
    "GoToObj",
    "GoToRedBallGrey",
    "GoToLocal",
    "OpenDoor",
    "PickupLoc",
    "GoToObjMaze",
    "PutNextLocal",
    "Open",
    "Pickup",
    "Unlock",
    "GoToSeq",
    "Synth",
]
LEVELS: dict[Level, int] = {
    "GoToObj": 1,
    "GoToRedBallGrey": 1,
    "GoToLocal": 2,
    "OpenDoor": 2,
    "PickupLoc": 2,
    "GoToObjMaze": 3,
    "PutNextLocal": 3,
    "Open": 4,
    "Pickup": 4,
    "Unlock": 4,
    "GoToSeq": 5,
    "Synth": 5,
}
"""The package's main levels that its bot solves, by complexity."""
SEEDS = 50
"""Of the package's, those from 0 on, that are the benchmark's test tasks of a level."""
MOVES = {
    "turn_left": ("left", "Turn left."),
    "turn_right": ("right", "Turn right."),
    "go_forward": ("forward", "Go a step ahead."),
    "pick_up": ("pickup", "Pick up the thing right ahead."),
    "drop": ("drop", "Drop what you carry, right ahead."),
    "toggle": ("toggle", "Open or close the door right ahead, or open the box."),
}


@cache
def _package() -> Any:
    """The module that makes environments; the package says hello on standard output."""
    with contextlib.redirect_stdout(io.StringIO()):
        import_module("minigrid")
        return import_module("gymnasium")


def told(grid: Any, seen: Any, carrying: Any) -> str:
    """What is seen, in words: things by their place, and how far the way is free.

    Args:
        grid: cells in view, the agent in the middle of the last row, looking up.
        seen: which of them are visible, [width, height] bool.
        carrying: the thing in hand, or None.
    """
    middle, bottom = grid.width // 2, grid.height - 1
    things = []
    for y in range(bottom, -1, -1):
        for x in sorted(range(grid.width), key=lambda x: (abs(x - middle), x)):
            cell = grid.get(x, y) if seen[x, y] and (x, y) != (middle, bottom) else None
            if cell is not None and cell.type not in {"wall", "floor"}:
                things.append(f"{_named(cell)} {_place(bottom - y, x - middle)}")
    ways = {"ahead": (0, -1), "left": (-1, 0), "right": (1, 0)}
    free = " , ".join(
        f"{name} {_free(grid, seen, (middle, bottom), step)}" for name, step in ways.items()
    )
    sight = " , ".join(things) or "nothing"
    hand = _named(carrying) if carrying is not None else "nothing"
    return f"you see {sight} . free steps {free} . you carry {hand}"


def _named(cell: Any) -> str:
    state = ""
    if cell.type == "door":
        state = "open " if cell.is_open else "locked " if cell.is_locked else "closed "
    return f"{state}{cell.color} {cell.type}"


def _place(ahead: int, side: int) -> str:
    where = [f"{ahead} ahead"] if ahead else []
    where += [f"{abs(side)} {'left' if side < 0 else 'right'}"] if side else []
    return " ".join(where)


def _free(grid: Any, seen: Any, place: tuple[int, int], step: tuple[int, int]) -> int:
    """Cells in a direction that can be walked on, as far as is seen."""
    (x, y), steps = place, 0
    while True:
        x, y = x + step[0], y + step[1]
        if not (0 <= x < grid.width and 0 <= y < grid.height and seen[x, y]):
            return steps
        cell = grid.get(x, y)
        if cell is not None and not cell.can_overlap():
            return steps
        steps += 1


class BabyOptions(BaseModel):
    """What may be chosen where BabyAI is a domain."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    levels: tuple[Level, ...] = Field(
        default=tuple(LEVELS),
        min_length=1,
        description="The package's levels that tasks are drawn from, in turn.",
    )
    tests: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=SEEDS, description="Tasks of each level in the split `test`."
    )


class BabyEnvironment(Game):
    """One episode in a level. Bots follow the package's own `game`, and its `last` move."""

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Build the level's grid from its seed."""
        self.start(task.setup["level"], task.setup["seed"])
        return BabyAI.tools

    def start(self, level: str, seed: int) -> str:
        """Begin; the instruction and the first sight."""
        made = _package().make(f"BabyAI-{level}-v0", disable_env_checker=True)
        self.game: Any = made.unwrapped
        with contextlib.redirect_stdout(io.StringIO()), bounded("BabyAI: a level"):
            self.game.reset(seed=seed)
        self.last: Any = None
        self._solved = self._ended = False
        return f"{self.game.instrs.surface(self.game)} . {self.sight()}"

    def sight(self) -> str:
        """What the agent sees now."""
        grid, seen = self.game.gen_obs_grid()
        return told(grid, seen, self.game.carrying)

    def _call(self, call: ToolCall) -> StepResult:
        if call.name not in MOVES or call.arguments:
            return StepResult("error: no such move", failed=True)
        self.last = self.game.actions[MOVES[call.name][0]]
        with bounded("BabyAI: a step"):
            _, reward, ended, cut, _ = self.game.step(self.last)
        self._solved, self._ended = reward > 0, bool(ended or cut)
        reached = ("solved",) * self._solved
        return StepResult(self.sight(), 0.0, reached, float(self._solved), self._ended)


class BabyExpert:
    """The package's bot."""

    def __init__(self) -> None:
        self._bot: Any = None

    def next_action(self, state: State) -> Action:
        """The bot's move; it takes the last one into account, whoever made it.

        Raises:
            EnvironmentFault: the episode is not one of BabyAI, or the bot gives up.
        """
        environment = state.played_in(BabyEnvironment)
        return self.move(environment)

    def move(self, environment: BabyEnvironment) -> Action:
        """The bot's move in an environment that it has followed from the start."""
        if self._bot is None:
            module: Any = import_module("minigrid.utils.baby_ai_bot")
            self._bot = module.BabyAIBot(environment.game)
        with contextlib.redirect_stdout(io.StringIO()), bounded("BabyAI: the bot"):
            try:
                move = self._bot.replan(environment.last)
            except (AssertionError, _gives_up()) as error:
                raise EnvironmentFault(f"BabyAI: the bot gives up: {error!r}") from None
        names = {own: name for name, (own, _) in MOVES.items()}
        return ToolCall(names[move.name]) if move.name in names else Say("done", closing=True)


def _gives_up() -> type[Exception]:
    """What the bot raises where a box was opened."""
    module: Any = import_module("minigrid.utils.baby_ai_bot")
    error: type[Exception] = module.DisappearedBoxError
    return error


def _bot_turns(environment: BabyEnvironment) -> int:
    """The moves that the bot takes; 0 where it does not get there."""
    expert, turns = BabyExpert(), 0
    try:
        while not environment.outcome().success:
            action = expert.move(environment)
            if isinstance(action, Say) or environment.step(action).failed:
                return 0
            turns += 1
    except EnvironmentFault:
        return 0
    return turns


class BabyAI(Silent):
    """Twelve levels in turn, 50 seeds each for `test`; unlimited for training."""

    Options: ClassVar[type[BabyOptions]] = BabyOptions
    name = "babyai"
    description = "Follow an instruction in a grid world that is told in words."
    policy = (
        "Follow the instruction by moving in the grid. You see what lies ahead of you, no walls. "
        "Turn to look around. You can open doors, and unlock them with a key of their colour.\n"
    )
    tools = tuple(tool(name, about) for name, (_, about) in MOVES.items())

    def __init__(self, options: BabyOptions | None = None) -> None:
        find(self.name).check()
        self.options = options or BabyOptions()

    def families(self) -> list[tuple[str, int]]:
        """Name and complexity of each level."""
        return [(level, LEVELS[level]) for level in self.options.levels]

    def task_count(self, split: Split) -> int | None:
        """How many tasks a split has; None where they are unlimited."""
        return len(self.options.levels) * self.options.tests if split == "test" else None

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The levels in turn: as many seeds each as the options say where `split` is test, else
        without end."""
        for number in numbers(split, seed, self.options.tests):
            for level in self.options.levels:
                made = self._task(level, number)
                if made.expert_turns or split == "test":
                    yield made

    def _task(self, level: Level, number: int) -> Task:
        environment = BabyEnvironment()
        query = environment.start(level, number)
        turns = _bot_turns(environment)
        setup = {"level": level, "seed": number}
        return task(self.name, level, LEVELS[level], query, {}, setup, turns)

    def turns(self, task: Task) -> int:
        """Twice what the bot needs, and 20 to look around; less than the package allows."""
        return 2 * task.expert_turns + 20

    def environment(self) -> BabyEnvironment:
        """A fresh environment."""
        return BabyEnvironment()

    def expert(self) -> BabyExpert:
        """The bot."""
        return BabyExpert()
