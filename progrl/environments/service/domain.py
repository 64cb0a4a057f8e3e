"""A service desk as a domain: its tasks, environments, views of users, and expert."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from progrl.dialogue.messages import ToolSpec
from progrl.dialogue.tasks import Split, Task, content_hash, split_of
from progrl.dialogue.users import GoalChange, UserView
from progrl.environments.service.drafts import Draft, draft, told_at_once
from progrl.environments.service.environment import ServiceEnvironment
from progrl.environments.service.expert import ServiceExpert
from progrl.environments.service.plans import (
    Family,
    Service,
    compile_plan,
    milestones,
    view_facts,
    view_labels,
    view_wishes,
)
from progrl.environments.service.replay import replay, turns
from progrl.environments.service.wording import opening
from progrl.seeds import Seed

Level = Annotated[int, Field(ge=1, le=5)]
Rate = Annotated[float, Field(ge=0.0, le=1.0)]


class ServiceOptions(BaseModel):
    """What may be chosen of a service domain."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal_change_rate: Rate = Field(
        default=0.15,
        description="Share of tasks of level 3 and above whose user has second thoughts.",
    )
    tool_failure_rate: Rate = Field(
        default=0.1, description="Share of tasks of level 2 and above in which one call fails once."
    )
    levels: tuple[Level, ...] = Field(
        default=(1, 2, 3, 4, 5),
        min_length=1,
        description="Levels that tasks are drawn from, in turn.",
    )


class ServiceDomain:
    """A domain made of a `Service`; subclasses name theirs."""

    service: ClassVar[Service]
    Options: ClassVar[type[ServiceOptions]] = ServiceOptions

    def __init__(self, options: ServiceOptions | None = None) -> None:
        self.options = options or ServiceOptions()
        self.name = self.service.name
        self.description = self.service.description
        self.policy = self.service.policy
        self.tools: tuple[ToolSpec, ...] = tuple(t.spec for t in self.service.tools.values())
        self._start = lru_cache(maxsize=256)(self.service.start)

    def families(self) -> list[tuple[str, int]]:
        """Name and level of each family of tasks."""
        return [(family.name, family.level) for family in self.service.families]

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """Unlimited tasks: the levels take turns, and within a level its families."""
        root = Seed.root(seed).child("domain", self.name)
        by_level: dict[int, list[Family]] = {level: [] for level in self.options.levels}
        for family in self.service.families:
            if family.level in by_level:
                by_level[family.level].append(family)
        slot = 0
        while True:
            for level, families in by_level.items():
                family = families[slot % len(families)]
                yield self._task(split, root.child("level", level).child("slot", slot), family)
            slot += 1

    def environment(self) -> ServiceEnvironment:
        """A fresh environment."""
        return ServiceEnvironment(self.service, self._start)

    def expert(self) -> ServiceExpert:
        """The expert."""
        return ServiceExpert()

    def user_view(self, task: Task) -> UserView:
        """The facts, the wishes, and the change of mind that is to come."""
        start = self._start(task.setup["seed"])
        change = task.schedule.get("change")
        view = self._view(task, task.goal, start)
        if change:
            after = self._view(task, change["goal"], start)
            view = replace(view, change=GoalChange(change["at_reply"], change["text"], after))
        return view

    def static(self, task: Task) -> Task:
        """The task with its last goal in the opening query, and with the consent to it."""
        change = task.schedule.get("change")
        goal = change["goal"] if change else task.goal
        start = self._start(task.setup["seed"])
        plan = compile_plan(self.service, goal, start)
        goal = {**goal, "told": told_at_once(plan)}
        query = opening(
            Seed(f"static={task.seed}").random(), self.service, plan, goal["wishes"], goal["told"]
        )
        schedule = {**task.schedule, "consent": True}
        schedule.pop("change", None)
        kept = [
            milestone
            for milestone in milestones(self.service, plan, goal["told"])
            if not milestone.name.startswith("confirmed")
        ]
        total = sum(milestone.weight for milestone in kept)
        return self._counted(
            replace(
                task,
                query=query,
                goal=goal,
                schedule=schedule,
                milestones=tuple(replace(m, weight=m.weight / total) for m in kept),
            )
        )

    def _view(self, task: Task, goal: Any, start: Any) -> UserView:
        plan = compile_plan(self.service, goal, start)
        return UserView(
            self.name,
            task.query,
            view_facts(self.service, plan, goal["told"]),
            view_wishes(self.service, plan),
            task.seed,
            labels=view_labels(self.service, plan),
        )

    def _task(self, split: Split, place: Seed, family: Family) -> Task:
        """The first candidate of this place in the stream that falls into the split."""
        tried = 0
        while True:
            seed = place.child("try", tried).value
            tried += 1
            made = draft(
                Seed(f"task={seed}").random(),
                self.service,
                family,
                self._start(seed),
                self.options.goal_change_rate,
                self.options.tool_failure_rate,
            )
            if made is None:
                continue
            hash_ = content_hash(self.name, made.query, made.goal, {"seed": seed}, made.schedule)
            if split_of(hash_) == split:
                return self._played(made, seed, hash_)

    def _played(self, made: Draft, seed: int, hash_: str) -> Task:
        change = made.schedule.get("change")
        goal = change["goal"] if change else made.goal
        plan = compile_plan(self.service, goal, self._start(seed))
        task = Task(
            f"{self.name}-{hash_[:16]}",
            self.name,
            made.family.name,
            made.family.level,
            made.query,
            made.goal,
            {"seed": seed},
            made.schedule,
            milestones(self.service, plan, goal["told"]),
            expert_turns=0,
            seed=seed,
        )
        return self._counted(task)

    def _counted(self, task: Task) -> Task:
        """The task with the turns that its expert takes."""
        history, outcome = replay(task, self.environment(), self.expert(), self.user_view(task))
        if not outcome.success or not outcome.policy_kept:
            raise RuntimeError(f"The expert failed its own task {task.id} ({task.family}).")
        return replace(task, expert_turns=turns(history))
