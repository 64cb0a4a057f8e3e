"""An episode at a service desk."""

from collections.abc import Callable

from progrl.dialogue.acts import affirms, asks_confirmation, contains, mentions
from progrl.dialogue.messages import Action, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply
from progrl.environments.contracts import StepResult
from progrl.environments.service.plans import (
    Ask,
    Look,
    Plan,
    Service,
    WishPlan,
    compile_plan,
)
from progrl.environments.service.tools import Refusal, Session
from progrl.environments.service.world import Record, Start, World
from progrl.errors import MalformedAction

_ENDED = StepResult("error: the conversation has ended", failed=True)


class ServiceEnvironment:
    """The records, what was said, and what of the goal has been reached.

    A write needs the user's consent: the agent's last words asked to confirm and named what the
    tool's `named` says, and the user affirmed them. A write without it is done, for the system
    cannot know, but breaks the policy and earns no progress. A write uses the consent up, and so
    does the user's next reply. Where the task's schedule says `consent`, the opening query has
    agreed to what the goal asks for, and to nothing else.
    """

    reward_bounds = (0.0, 0.0)

    def __init__(self, service: Service, start: Callable[[int], Start]) -> None:
        self._service = service
        self._start = start
        self._specs = tuple(tool.spec for tool in service.tools.values())

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Build the task's first state; the domain's tools."""
        start = self._start(task.setup["seed"])
        change = task.schedule.get("change")
        self._first = start
        self.plan: Plan = compile_plan(self._service, task.goal, start)
        self._final = compile_plan(self._service, change["goal"], start) if change else self.plan
        self._change_at: int = change["at_reply"] if change else 0
        failure = task.schedule.get("failure")
        self._failing: tuple[str, int] = (failure["tool"], failure["call"]) if failure else ("", 0)
        self._session = Session(World(start.tables))
        self._seen: set[str] = set()
        self._refused: set[str] = set()
        self._heard: list[str] = [task.query]
        self._said, self._consent = "", ""
        asked = [wish.write for wish in self.plan.wishes if task.schedule.get("consent")]
        self._agreed = {str(call) for call in asked if call is not None}
        self._replies = 0
        self._weights = {m.name: m.weight for m in task.milestones}
        self._reached: list[str] = []
        self._kept, self._ended = True, False
        self._gold: tuple[dict[tuple[str, str], Record], ...] | None = None
        return self._specs

    def step(self, action: Action) -> StepResult:
        """Apply a call or take note of words; nothing that an agent does raises."""
        if self._ended:
            return _ENDED
        if isinstance(action, ToolCall):
            return self._run(action)
        self._said = action.text
        self._ended = action.closing
        return self._result("", self._told(action))

    def hear(self, reply: UserReply) -> StepResult:
        """Take in the user's words, and with them a consent or a change of the goal."""
        self._replies += 1
        self._heard.append(reply.text)
        agreed = asks_confirmation(self._said) and affirms(reply.text)
        self._consent, self._said = (self._said if agreed else ""), ""
        if self._replies == self._change_at:
            self.plan, self._gold = self._final, None
        self._ended = self._ended or reply.leaves
        names = [
            f"heard_{step.name}"
            for wish in self._final.wishes
            for step in wish.steps
            if isinstance(step, Ask) and f"heard_{step.name}" in self._weights
            if mentions(reply.text, step.value)
        ]
        if agreed:
            names += [
                f"confirmed{wish.suffix}"
                for wish in self._final.wishes
                if wish.write is not None and self.agreed(wish.write)
            ]
        return self._result("", names)

    def outcome(self) -> Outcome:
        """Success is the goal's own final state, no other change, and all that had to be told."""
        expected = {key: record for gold in self._wanted() for key, record in gold.items()}
        told = all(
            f"told{wish.suffix}" in self._reached for wish in self._final.wishes if wish.tell
        )
        success = told and self._changed_goal() and self._session.world.changed == expected
        progress = min(1.0, sum(self._weights[name] for name in self._reached))
        kept = 1.0 if self._kept else 0.0
        return Outcome(success, progress, tuple(self._reached), self._kept, kept)

    # What experts may ask: all of it was shown by the conversation and the tools.

    def heard(self, value: str) -> bool:
        """The user has said `value`."""
        return any(mentions(text, value) for text in self._heard)

    def seen(self, key: str) -> bool:
        """A tool's result had this key."""
        return key in self._seen

    def identified(self) -> bool:
        """The user whom the task is about has been found."""
        return self.plan.user in self._session.users

    def agreed(self, call: ToolCall) -> bool:
        """The user has just agreed to this call, or it needs no consent."""
        tool = self._service.tools[call.name]
        if not tool.spec.writes or str(call) in self._agreed:
            return True
        return bool(self._consent) and tool.confirmed_by(
            self._consent, self._session, call.arguments
        )

    def refused(self, call: ToolCall) -> bool:
        """The system refused this very call for good."""
        return str(call) in self._refused

    def holds(self, wish: WishPlan) -> bool:
        """The records that this wish is about stand as it wants them."""
        gold = self._wanted_of(self.plan)[self.plan.wishes.index(wish)]
        changed = self._session.world.changed
        return all(changed.get(key) == record for key, record in gold.items())

    def _changed_goal(self) -> bool:
        return self._replies >= self._change_at

    def _wanted(self) -> tuple[dict[tuple[str, str], Record], ...]:
        return self._wanted_of(self._final)

    def _wanted_of(self, plan: Plan) -> tuple[dict[tuple[str, str], Record], ...]:
        """For each wish the records that it changes, as it wants them."""
        if plan is self.plan and self._gold is not None:
            return self._gold
        gold = []
        for wish in plan.wishes:
            session = Session(World(self._first.tables), {plan.user})
            if wish.write is not None:
                self._service.tools[wish.write.name].run(session, wish.write.arguments)
            gold.append(session.world.changed)
        if plan is self.plan:
            self._gold = tuple(gold)
        return tuple(gold)

    def _run(self, call: ToolCall) -> StepResult:
        tool = self._service.tools.get(call.name)
        if tool is None:
            return StepResult(f"error: no tool {call.name}", failed=True)
        try:
            tool.check(call.arguments)
            self._fail_as_scheduled(call.name)
            agreed = self.agreed(call)
            result = tool.run(self._session, call.arguments)
        except MalformedAction as error:
            return StepResult(f"error: {error}", failed=True)
        except Refusal as error:
            if error.final:
                self._refused.add(str(call))
            return StepResult(f"error: {error}", failed=True)
        self._seen.add(result.key)
        if tool.spec.writes:
            self._consent = ""
            self._kept = self._kept and agreed
        return self._result(result.text, self._done_by(result.key) if agreed else [])

    def _fail_as_scheduled(self, name: str) -> None:
        failing, count = self._failing
        if name == failing and count > 0:
            self._failing = (failing, count - 1)
            if count == 1:
                raise Refusal("system busy , try again", final=False)

    def _done_by(self, key: str) -> list[str]:
        names = ["identified"] if key == f"find_user:{self._final.user}" else []
        for wish in self._final.wishes:
            names += [
                f"{step.call.name}{wish.suffix}"
                for step in wish.steps
                if isinstance(step, Look) and step.key == key
            ]
            if wish.write is not None and wish.key == key:
                names.append(f"written{wish.suffix}")
        return names

    def _told(self, words: Say) -> list[str]:
        return [
            f"told{wish.suffix}"
            for wish in self._final.wishes
            if wish.tell
            and wish.source in self._seen
            and contains(words.text, wish.kind.tell_verbs)
            and all(mentions(words.text, value) for value in wish.tell)
        ]

    def _result(self, observation: str, names: list[str]) -> StepResult:
        new = tuple(
            n for n in dict.fromkeys(names) if n in self._weights and n not in self._reached
        )
        self._reached += new
        gain = sum(self._weights[name] for name in new)
        return StepResult(observation, milestones=new, gain=gain)
