"""What agents are told about their next tool: by a learned policy, or at random."""

from collections.abc import Callable, Sequence
from copy import copy
from itertools import pairwise
from random import Random

from progrl.agent.advice import Advice
from progrl.config.orchestration import HintAdvice, LearnedAdvice
from progrl.dialogue.codec import STOP, TALK, Hint
from progrl.dialogue.messages import Action, ToolSpec
from progrl.orchestration.plan import Course, Orchestrator
from progrl.orchestration.policy import ToolPolicy
from progrl.seeds import Seed


class PolicyAdvisor:
    """Advice of a learned tool policy: hints or a bias.

    Whether a hint is dropped depends on round, task and message, never on the episode: episodes of
    a group read the same as long as they go alike.

    Args:
        config: which of the two, and how much.
        orchestrator: asks the policy.
        policy: whose advice, by the task's id.
        drop: share of the hints that are dropped.
        seed: of the first round's drops.
    """

    def __init__(
        self,
        config: LearnedAdvice,
        orchestrator: Orchestrator,
        policy: Callable[[str], ToolPolicy],
        drop: float,
        seed: Seed,
    ) -> None:
        self.config, self.drop, self.seed = config, drop, seed
        self._orchestrator, self._policy = orchestrator, policy
        self._opened: dict[str, tuple[tuple[ToolSpec, ...], Course]] = {}

    def begin(self, seed: Seed, queries: Sequence[str] = ()) -> None:
        """A new round: policies and memory may have changed, and drops are drawn anew."""
        self.seed = seed
        self._orchestrator.prepare(queries)
        self._opened.clear()

    def guide(self, task_id: str, query: str) -> "_PolicyGuide":
        """A guide through an episode of a task."""
        return _PolicyGuide(self, task_id, query)

    def course(self, task_id: str, query: str, tools: tuple[ToolSpec, ...]) -> Course:
        """A course of an episode's own; what a round's episodes of a task recall is shared."""
        offered, course = self._opened.get(task_id, (None, None))
        if course is None or offered != tools:
            course = self._orchestrator.open(self._policy(task_id), query, tools)
            self._opened[task_id] = (tools, course)
        return copy(course)


class _PolicyGuide:
    def __init__(self, advisor: PolicyAdvisor, task_id: str, query: str) -> None:
        self._advisor, self._task, self._query = advisor, task_id, query
        self._draws = _Draws(advisor.seed, task_id)
        self._tools: tuple[ToolSpec, ...] = ()
        self._course: Course | None = None

    def advise(self, tools: Sequence[ToolSpec]) -> Advice:
        course = self._offered(tuple(tools))
        if self._draws.next().random() < self._advisor.drop:
            return Advice()
        ranked = course.ranked()
        config = self._advisor.config
        if isinstance(config, HintAdvice):
            return Advice(hint=ranked[: config.top])
        return Advice(lean=[(tool, config.strength * share) for tool, share in ranked])

    def took(self, action: Action) -> None:
        if self._course is not None:
            self._course.took(action)

    def _offered(self, tools: tuple[ToolSpec, ...]) -> Course:
        """The episode's course, with the tools that there now are."""
        if self._course is None:
            self._course = self._advisor.course(self._task, self._query, tools)
        elif tools != self._tools:
            self._course.offer(self._advisor.course(self._task, self._query, tools).catalogue)
        self._tools = tools
        return self._course


class RandomAdvisor:
    """Hints on tools drawn uniformly, with confidences that say nothing.

    Args:
        top: how many tools.
        drop: share of the hints that are dropped.
        seed: of the first round.
    """

    def __init__(self, top: int, drop: float, seed: Seed) -> None:
        self.top, self.drop, self.seed = top, drop, seed

    def begin(self, seed: Seed, queries: Sequence[str] = ()) -> None:
        """A new round: all is drawn anew."""
        self.seed = seed

    def guide(self, task_id: str, query: str) -> "_RandomGuide":
        """A guide through an episode of a task."""
        return _RandomGuide(self, task_id)


class _RandomGuide:
    def __init__(self, advisor: RandomAdvisor, task_id: str) -> None:
        self._advisor, self._draws = advisor, _Draws(advisor.seed, task_id)

    def advise(self, tools: Sequence[ToolSpec]) -> Advice:
        random = self._draws.next()
        if random.random() < self._advisor.drop:
            return Advice()
        names = [*(tool.name for tool in tools), TALK, STOP]
        return Advice(hint=_made_up(names, random)[: self._advisor.top])

    def took(self, action: Action) -> None:
        pass


class _Draws:
    """A generator for each message of an episode, the same in all episodes of task and round."""

    def __init__(self, seed: Seed, task_id: str) -> None:
        self._node, self._message = seed.child("task", task_id), 0

    def next(self) -> Random:
        random = self._node.child("message", self._message).random()
        self._message += 1
        return random


def _made_up(names: Sequence[str], random: Random) -> Hint:
    """All names in random order, with shares that fall and sum to 1, as a policy's do."""
    cuts = sorted([0.0, 1.0, *(random.random() for _ in names[1:])])
    shares = sorted((b - a for a, b in pairwise(cuts)), reverse=True)
    return list(zip(random.sample(names, len(names)), shares, strict=True))
