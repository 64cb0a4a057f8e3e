"""A domain of one's own: readers ask a library's desk on which shelf a book stands."""

from collections.abc import Iterator
from random import Random
from typing import Any

from progrl.dialogue.acts import mentions
from progrl.dialogue.messages import Action, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Milestone, Split, Task, content_hash, split_of
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import Fact, UserReply, UserView, Wish
from progrl.environments.contracts import State, StepResult
from progrl.errors import MalformedAction
from progrl.seeds import Seed

WORDS = ("river", "winter", "garden", "silent", "red", "letter", "house", "last")
FIND = ToolSpec(
    "find_book",
    "See where a book stands.",
    {
        "type": "object",
        "properties": {"title": {"type": "string", "description": "its title"}},
        "required": ["title"],
        "additionalProperties": False,
    },
)


class LibraryEnvironment:
    """The shelves, and what the reader has been told."""

    reward_bounds = (0.0, 0.0)  # no turn rewards of its own: progress is made of milestones

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Fill the shelves."""
        self._task, self._shelves = task, dict(task.setup["shelves"])
        self._reached: dict[str, float] = {}
        return (FIND,)

    def step(self, action: Action) -> StepResult:
        """Look a book up, or listen to what the reader is told."""
        shelf = self._shelves[self._task.goal["title"]]
        if isinstance(action, Say):
            return self._reach("told") if mentions(action.text, shelf) else StepResult()
        if action.name != FIND.name:
            return StepResult(f"error: no tool {action.name}", failed=True)
        try:
            FIND.check(action.arguments)
        except MalformedAction as error:
            return StepResult(f"error: {error}", failed=True)
        found = self._shelves.get(action.arguments["title"])
        if found is None:
            return StepResult("error: no such book", failed=True)
        return self._reach("found" if found == shelf else "", f"shelf {found}")

    def hear(self, reply: UserReply) -> StepResult:
        """Nothing that a reader says moves a book."""
        return StepResult()

    def outcome(self) -> Outcome:
        """Success is that the reader knows the shelf, and that it was looked up."""
        success = {"found", "told"} <= self._reached.keys()
        progress = sum(self._reached.values())
        return Outcome(success, progress, tuple(self._reached), True, float(success))

    def _reach(self, name: str, observation: str = "") -> StepResult:
        weights = {m.name: m.weight for m in self._task.milestones}
        if name not in weights or name in self._reached:
            return StepResult(observation)
        self._reached[name] = weights[name]
        return StepResult(observation, milestones=(name,), gain=weights[name])


class LibraryExpert:
    """Asks for the title where the reader has not told it, looks it up, tells the shelf."""

    def next_action(self, state: State) -> Action:
        """What a good librarian does next."""
        last, title = state.history[-1], state.task.goal["title"]
        if last.role == "tool":
            return Say(f"it stands on {last.content} . bye", closing=True)
        if any(m.role == "user" and mentions(m.content, title) for m in state.history):
            return ToolCall(FIND.name, {"title": title})
        return Say("what is the title ?")


class Library:
    """Readers and books."""

    name = "library"
    description = "A library's desk: where does a book stand?"
    policy = "Look every book up before you tell where it stands.\n"
    tools = (FIND,)

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """Readers who tell the title at once (level 1), or when asked (level 2), in turn."""
        number = made = 0
        while True:
            random = Seed.root(seed).child("library", number).random()
            number += 1
            task = self._task(random, 1 + made % 2)
            if split_of(task.content_hash) == split:
                made += 1
                yield task

    def _task(self, random: Random, level: int) -> Task:
        titles = [" ".join(random.sample(WORDS, 2)) for _ in range(4)]
        shelves = {title: str(random.randrange(10, 100)) for title in titles}
        query = "hi , where is a book ?" if level == 2 else f"hi , where is {titles[0]} ?"
        goal, setup = {"title": titles[0]}, {"shelves": shelves}
        schedule: dict[str, Any] = {}
        hash_ = content_hash(self.name, query, goal, setup, schedule)
        return Task(
            id=f"{self.name}-{hash_[:16]}",
            domain=self.name,
            family="told" if level == 1 else "asked",
            level=level,
            query=query,
            goal=goal,
            setup=setup,
            schedule=schedule,
            milestones=(Milestone("found", 0.5), Milestone("told", 0.5)),
            expert_turns=level + 1,
            seed=random.randrange(2**32),
        )

    def environment(self) -> LibraryEnvironment:
        """A library of its own for each episode."""
        return LibraryEnvironment()

    def user_view(self, task: Task) -> UserView:
        """The reader knows the title, and wants the shelf."""
        title, shelf = task.goal["title"], task.setup["shelves"][task.goal["title"]]
        fact = Fact("title", title, ("title", "which book", "called"), told=task.level == 1)
        words = "i want to know where it stands"
        wish = Wish("shelf", words, ("stands", "shelf"), (shelf,), "know")
        return UserView(self.name, task.query, (fact,), (wish,), task.seed)

    def expert(self) -> LibraryExpert:
        """The librarian."""
        return LibraryExpert()
