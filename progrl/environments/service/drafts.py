"""Drawing tasks: wishes from the world, what is kept back, a change of mind, a tool that fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from progrl.environments.service.plans import (
    IDENTIFY,
    Ask,
    Family,
    Look,
    Plan,
    Service,
    compile_plan,
)
from progrl.environments.service.wording import instead, opening, second_thought, telling
from progrl.environments.service.world import Start

Values = dict[str, str]
CHANGE_AT = 1
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Draft:
    """The parts of a task, before its split is decided and the expert has played it."""

    family: Family
    query: str
    goal: dict[str, Any]
    schedule: dict[str, Any]


def draft(
    random: Random,
    service: Service,
    family: Family,
    start: Start,
    change_rate: float,
    failure_rate: float,
) -> Draft | None:
    """Draw a task of a family; None where this world does not offer it."""
    values = _wishes(random, service, family, start)
    if values is None:
        return None
    flexible = all(service.kinds[name].flexible for name in family.kinds)
    changes = family.level >= 3 and flexible and random.random() < change_rate
    fails = family.level >= 2 and random.random() < failure_rate
    goal: dict[str, Any] = {"user": start.hero, "wishes": values, "told": []}
    plan = compile_plan(service, goal, start)
    if not _distinct(plan):
        return None
    # Who the user is stays hidden until reply `CHANGE_AT` at least, and no write is possible
    # before that is known: so the change comes first, whatever the agent does.
    goal["told"] = _told(random, family, plan, always=(IDENTIFY,) if changes else ())
    query = opening(random, service, plan, values, goal["told"])
    schedule: dict[str, Any] = {}
    if changes:
        change = _change(random, service, start, goal, plan)
        if change is None:
            return None
        schedule["change"] = change
        plan = compile_plan(service, change["goal"], start)
    if fails:
        schedule["failure"] = _failure(random, plan)
    return Draft(family, query, goal, schedule)


def _wishes(random: Random, service: Service, family: Family, start: Start) -> list[Values] | None:
    wishes: list[Values] = []
    for kind in family.kinds:
        taken = frozenset(w[service.record] for w in wishes if service.record in w)
        values = service.fill(random, start, kind, {}, taken)
        if values is None:
            return None
        wishes.append({"kind": kind, **values})
    return wishes


def _asks(plan: Plan) -> list[Ask]:
    return [step for wish in plan.wishes for step in wish.steps if isinstance(step, Ask)]


def _distinct(plan: Plan) -> bool:
    """No two facts have the same value, or hearing one would be hearing the other."""
    values = [ask.value for ask in _asks(plan)]
    return len(set(values)) == len(values)


def _told(random: Random, family: Family, plan: Plan, always: tuple[str, ...]) -> list[str]:
    facts = ([IDENTIFY] if plan.identifies else []) + [ask.name for ask in _asks(plan)]
    always = tuple(dict.fromkeys(always + family.always))
    free = [name for name in facts if name not in always]
    hide = max(0, random.randint(*family.hide) - len(always))
    hidden = {*always, *random.sample(free, min(hide, len(free)))}
    by_name = random.random() < 0.3
    told: list[str] = []
    for name in facts:
        if name == IDENTIFY:
            known = ("name",) if name in hidden else ("name", "zip")
            told += known if by_name else () if name in hidden else ("email",)
        elif name not in hidden:
            told.append(name)
    return told


def told_at_once(plan: Plan) -> list[str]:
    """The facts of an opening query that keeps nothing back."""
    return [*(("email",) if plan.identifies else ()), *(ask.name for ask in _asks(plan))]


def _change(
    random: Random, service: Service, start: Start, goal: dict[str, Any], plan: Plan
) -> dict[str, Any] | None:
    """Second thoughts about one wish: another value for one of its facts, or another wish."""
    for _ in range(_TRIES):
        at = random.randrange(len(plan.wishes))
        new = _new_wish(random, service, start, goal["wishes"], at)
        if new is None:
            continue
        wishes: list[Values] = [new if i == at else w for i, w in enumerate(goal["wishes"])]
        changed: dict[str, Any] = {"user": goal["user"], "wishes": wishes, "told": []}
        after = compile_plan(service, changed, start)
        known = {ask.name: ask.value for ask in _asks(plan)}
        fresh = {a.name: a.value for a in _asks(after) if known.get(a.name) != a.value}
        if not _distinct(after) or {*fresh.values()} & {*known.values()}:
            continue
        same = new["kind"] == goal["wishes"][at]["kind"]
        said = [name for name in fresh if same or random.random() < 0.5]
        clauses = telling(random, service, after, said)
        if not same:
            clauses.insert(0, instead(random, after.wishes[at], new))
        names = {"email", "name", "zip", *(ask.name for ask in _asks(after))} - {*fresh}
        changed["told"] = [name for name in goal["told"] if name in names] + said
        return {"at_reply": CHANGE_AT, "text": second_thought(random, clauses), "goal": changed}
    return None


def _new_wish(
    random: Random, service: Service, start: Start, wishes: Sequence[Values], at: int
) -> Values | None:
    """What takes the place of a wish, about the same record; None if the draw gave no change."""
    old = wishes[at]
    kind = service.kinds[old["kind"]]
    present = {wish["kind"] for wish in wishes}
    others = [name for name in service.instead.get(kind.name, ()) if name not in present]
    other = random.choice(others) if others and random.random() < 0.5 else kind.name
    kept = set(service.kinds[other].facts) & set(kind.facts)
    if other == kind.name:
        kept -= {kind.flexible}
    fixed = {service.record: old[service.record], **{name: old[name] for name in sorted(kept)}}
    taken = frozenset(w[service.record] for w in wishes if w is not old)
    values = service.fill(random, start, other, fixed, taken)
    if values is None or (other == kind.name and values[kind.flexible] == old[kind.flexible]):
        return None
    return {"kind": other, **values}


def _failure(random: Random, plan: Plan) -> dict[str, Any]:
    """One of the calls that the plan needs, as (tool, which of its calls)."""
    calls = ["find_user"] if plan.identifies else []
    for wish in plan.wishes:
        calls += [step.call.name for step in wish.steps if isinstance(step, Look)]
        calls += [wish.write.name] if wish.write else []
    calls = [name for i, name in enumerate(calls) if name != "find_user" or i == 0]
    at = random.randrange(len(calls))
    return {"tool": calls[at], "call": calls[: at + 1].count(calls[at])}
