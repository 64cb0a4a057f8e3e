"""From a goal to what can be checked: wishes, the steps to each, milestones, the user's view.

All templates are filled with a wish's values, for instance `{order}`, and `{do}`, the wish's verb.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from progrl.dialogue.messages import ToolCall
from progrl.dialogue.tasks import Milestone
from progrl.dialogue.users import Fact, Wish
from progrl.environments.service.tools import Tool
from progrl.environments.service.world import Record, Start

Values = Mapping[str, str]

IDENTIFY = "identify"  # a step of a script: find out who the user is
_ID_CUES = {
    "email": ("email", "e-mail", "mail address"),
    "name": ("your name", "full name", "name and zip"),
    "zip": ("zip", "postal code"),
}


@dataclass(frozen=True, slots=True)
class Form:
    """How a fact of that name is asked for and told.

    Attributes:
        question: what the expert asks.
        cues: phrases in a question that ask for it.
        told: wordings in which a user tells it; `{v}` is the value.
        label: what people call it.
    """

    question: str
    cues: tuple[str, ...]
    told: tuple[str, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call by templates; `key` is that of the result that it leads to."""

    tool: str
    arguments: Mapping[str, str]
    key: str


@dataclass(frozen=True, slots=True)
class Kind:
    """Something that a user may want of this desk.

    Attributes:
        name: of the kind.
        phrases: after "i want to", how a user says it.
        do: one verb for it.
        script: the way there: a fact's name (ask for it), IDENTIFY, or a look-up.
        closer: what the expert says at the end, once it is done.
        write: the change it needs, if it does.
        mentions: values in a request to confirm, as the user knows them.
        confirm: the expert's request.
        tell: values that the closing words must hold; empty if nothing has to be told.
        tell_verbs: words one of which must stand beside them.
        flexible: the fact that a user may have second thoughts about.
    """

    name: str
    phrases: tuple[str, ...]
    do: str
    script: tuple[str | Call, ...]
    closer: str
    write: Call | None = None
    mentions: tuple[str, ...] = ()
    confirm: str = ""
    tell: tuple[str, ...] = ()
    tell_verbs: tuple[str, ...] = ()
    flexible: str = ""

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the facts that its script asks for."""
        return tuple(s for s in self.script if isinstance(s, str) and s != IDENTIFY)


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of task: its wishes, and how many of the facts the opening query keeps back.

    Who the user is counts as one fact, named IDENTIFY. `always` are kept back in any case.
    """

    name: str
    level: int
    kinds: tuple[str, ...]
    hide: tuple[int, int]
    always: tuple[str, ...] = ()


@dataclass(frozen=True)
class Service:
    """A service domain, whole.

    Attributes:
        tools: by name.
        kinds: wishes by name.
        forms: of facts, by name.
        families: of tasks.
        instead: for a kind, those that a user may want instead, on the same record.
        record: the slot that names the record that a wish is about.
        start: the first state of a seed.
        fill: draws the values of a wish of a kind, given values that are already fixed; None where
            this world has nothing to offer for it. Records in the last argument are taken.
    """

    name: str
    description: str
    policy: str
    tools: Mapping[str, Tool]
    kinds: Mapping[str, Kind]
    forms: Mapping[str, Form]
    families: tuple[Family, ...]
    instead: Mapping[str, tuple[str, ...]]
    record: str
    start: Callable[[int], Start]
    fill: Callable[[Random, Start, str, Values, frozenset[str]], dict[str, str] | None]


@dataclass(frozen=True, slots=True)
class Ask:
    """A step: hear the value of a fact."""

    name: str
    value: str
    question: str


@dataclass(frozen=True, slots=True)
class Look:
    """A step: make a call whose result has this key."""

    call: ToolCall
    key: str


Step = Ask | Look | str


@dataclass(frozen=True, slots=True)
class WishPlan:
    """One wish with all templates filled.

    `source` is the key of the last look-up: what is told counts only once it has been seen.
    """

    kind: Kind
    suffix: str
    text: str
    steps: tuple[Step, ...]
    write: ToolCall | None
    key: str
    confirm: str
    mentions: tuple[str, ...]
    closer: str
    tell: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A goal, compiled: the user's record, and the plan of each wish."""

    user: str
    person: Record
    wishes: tuple[WishPlan, ...]

    @property
    def identifies(self) -> bool:
        """Some wish needs the user to be identified."""
        return any(IDENTIFY in wish.steps for wish in self.wishes)


def compile_wish(service: Service, values: Values, suffix: str) -> WishPlan:
    """Fill the templates of one wish (`values["kind"]` names its kind)."""
    kind = service.kinds[values["kind"]]
    slots = {**values, "do": kind.do}
    steps: list[Step] = []
    source = ""
    for step in kind.script:
        if isinstance(step, Call):
            source = step.key.format_map(slots)
            steps.append(Look(_call(step, slots), source))
        elif step == IDENTIFY:
            steps.append(step)
        else:
            question = service.forms[step].question.format_map(slots)
            steps.append(Ask(step + suffix, slots[step], question))
    return WishPlan(
        kind,
        suffix,
        f"i want to {kind.phrases[0].format_map(slots)}",
        tuple(steps),
        _call(kind.write, slots) if kind.write else None,
        kind.write.key.format_map(slots) if kind.write else "",
        kind.confirm.format_map(slots),
        tuple(m.format_map(slots) for m in kind.mentions),
        kind.closer.format_map(slots),
        tuple(t.format_map(slots) for t in kind.tell),
        source,
    )


def _call(call: Call, slots: Values) -> ToolCall:
    return ToolCall(call.tool, {k: v.format_map(slots) for k, v in call.arguments.items()})


def compile_plan(service: Service, goal: Mapping[str, Any], start: Start) -> Plan:
    """The plan of a goal. The second wish's facts have names that end in `_2`, and so on."""
    wishes = tuple(
        compile_wish(service, values, "" if i == 0 else f"_{i + 1}")
        for i, values in enumerate(goal["wishes"])
    )
    user = goal["user"]
    return Plan(user, start.tables["user"][user], wishes)


def milestones(service: Service, plan: Plan, told: Sequence[str]) -> tuple[Milestone, ...]:
    """What progress on a goal is made of; `told` are the facts that nobody has to ask for."""
    weights: dict[str, int] = {}
    if plan.identifies:
        weights["identified"] = 1
    for wish in plan.wishes:
        for step in wish.steps:
            if isinstance(step, Look):
                weights[f"{step.call.name}{wish.suffix}"] = 1
            elif isinstance(step, Ask) and step.name not in told:
                weights[f"heard_{step.name}"] = 1
        if wish.write is not None:
            if service.tools[wish.write.name].spec.writes:
                weights[f"confirmed{wish.suffix}"] = 2
            weights[f"written{wish.suffix}"] = 3
        if wish.tell:
            weights[f"told{wish.suffix}"] = 3
    total = sum(weights.values())
    return tuple(Milestone(name, weight / total) for name, weight in weights.items())


def view_facts(service: Service, plan: Plan, told: Sequence[str]) -> tuple[Fact, ...]:
    """All that the user knows: who they are, then the facts of each wish."""
    facts = [Fact(name, plan.person[name], cues, name in told) for name, cues in _ID_CUES.items()]
    for wish in plan.wishes:
        for step in wish.steps:
            if isinstance(step, Ask):
                form = service.forms[step.name.removesuffix(wish.suffix)]
                cues = tuple(cue.format(do=wish.kind.do) for cue in form.cues)
                facts.append(Fact(step.name, step.value, cues, step.name in told))
    return tuple(facts)


def view_labels(service: Service, plan: Plan) -> dict[str, str]:
    """What people call each fact."""
    labels = {"email": "email", "name": "name", "zip": "zip"}
    for wish in plan.wishes:
        for step in wish.steps:
            if isinstance(step, Ask):
                form = service.forms[step.name.removesuffix(wish.suffix)]
                labels[step.name] = form.label.format(do=wish.kind.do)
    return labels


def view_wishes(service: Service, plan: Plan) -> tuple[Wish, ...]:
    """What the user wants done and wants to know."""
    wishes = []
    for wish in plan.wishes:
        name = wish.kind.name + wish.suffix
        if wish.write is not None and service.tools[wish.write.name].spec.writes:
            verbs = service.tools[wish.write.name].verbs
            wishes.append(Wish(name, wish.text, verbs, wish.mentions, "act"))
        if wish.tell:
            verbs = wish.kind.tell_verbs
            wishes.append(Wish(f"{name}_answer", wish.text, verbs, wish.tell, "know"))
    return tuple(wishes)
