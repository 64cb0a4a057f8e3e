"""A desk where every message counts as a call of one tool: turns and tokens are fixed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from progrl.dialogue.codec import Bias, Hint
from progrl.dialogue.messages import Action, Message, ToolCall, ToolSpec
from progrl.dialogue.tasks import Milestone, Split, Task, content_hash
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import Expert, StepResult
from speed.workload import FIRST, Workload

LOOK = ToolSpec("look", "looks", {"type": "object", "properties": {}})


class DeskCodec:
    """Queries and observations are numbers that choose the ids to read, `read` of them each."""

    stop_ids: frozenset[int] = frozenset()

    def __init__(self, work: Workload) -> None:
        self._work = work

    def open(
        self, policy: str, tools: Sequence[ToolSpec], query: str, hint: Hint = ()
    ) -> list[int]:
        """The ids of a query."""
        return self._ids(query)

    def observe(self, message: Message, cut: bool = False, hint: Hint = ()) -> list[int]:
        """The ids of an observation."""
        return self._ids(message.content)

    def _ids(self, text: str) -> list[int]:
        random = Random(text)
        last = self._work.shape.vocabulary
        return [random.randrange(FIRST, last) for _ in range(self._work.read)]

    def lean(self, weights: Hint) -> Bias:
        """No bias."""
        return ()

    def act(self, action: Action) -> list[int]:
        """The expert is never asked."""
        raise NotImplementedError

    def parse(self, ids: Sequence[int], tools: Sequence[ToolSpec]) -> Action:
        """A call, whatever was sampled; how it is scored follows from the ids."""
        return ToolCall(LOOK.name, {"token": ids[-1]})

    def text(self, ids: Sequence[int]) -> str:
        """The last id."""
        return str(ids[-1])

    def save(self, folder: Path) -> None:
        """Nothing belongs to it."""


class DeskEnvironment:
    """Answers each call; episodes go on to the horizon."""

    reward_bounds = (0.0, 0.0)

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """The one tool."""
        self._task, self._turn, self._sum = task, 0, 0
        return (LOOK,)

    def step(self, action: Action) -> StepResult:
        """The next observation."""
        assert isinstance(action, ToolCall)
        self._turn += 1
        self._sum += int(action.arguments["token"])
        return StepResult(f"{self._task.query} {self._turn}")

    def hear(self, reply: UserReply) -> StepResult:
        """No user speaks."""
        return StepResult()

    def outcome(self) -> Outcome:
        """Half of all episodes succeed, by chance: groups have something to learn from."""
        won = self._sum % 2 == 1
        return Outcome(won, float(won), (), True, 0.0)


class Desk:
    """The domain."""

    name, description, policy, tools = "desk", "one tool", "", (LOOK,)

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """Queries that are numbers."""
        number = 0
        while True:
            yield desk_task(f"{split} {seed} {number}")
            number += 1

    def environment(self) -> DeskEnvironment:
        """A new one."""
        return DeskEnvironment()

    def user_view(self, task: Task) -> UserView:
        """Nothing but the query."""
        return UserView(self.name, task.query, (), (), task.seed)

    def expert(self) -> Expert:
        """There is none."""
        raise NotImplementedError


def desk_task(query: str) -> Task:
    """The task of a query."""
    digest = content_hash("desk", query, {}, {}, {})
    milestones = (Milestone("won", 1.0),)
    return Task(f"desk-{digest[:16]}", "desk", "look", 1, query, {}, {}, {}, milestones, 2, 0)
