"""The user's opening words, and those that announce a change of mind."""

from collections.abc import Sequence
from random import Random

from progrl.environments.service.plans import Ask, Plan, Service, WishPlan

_GREETINGS = ("", "hi , ", "hello , ", "good day , ", "hey , ")
_LEADS = ("i want to", "i need to", "i would like to", "please help me to", "can i")
_TURNS = ("wait , i changed my mind", "sorry , i changed my mind", "oh , i thought again")
_PERSON = {
    "email": ("my email is {v}", "email {v}"),
    "name": ("this is {v}", "my name is {v}"),
    "zip": ("my zip is {v}", "zip {v}"),
}


def phrase(random: Random, wish: WishPlan, values: dict[str, str]) -> str:
    """A wish as a verb phrase."""
    return random.choice(wish.kind.phrases).format_map(values)


def telling(random: Random, service: Service, plan: Plan, told: Sequence[str]) -> list[str]:
    """A clause for each fact told; with several wishes the record's clause says for which."""
    clauses = [
        random.choice(_PERSON[name]).format(v=plan.person[name])
        for name in ("email", "name", "zip")
        if name in told
    ]
    for wish in plan.wishes:
        for step in wish.steps:
            if isinstance(step, Ask) and step.name in told:
                wordings = service.forms[step.name.removesuffix(wish.suffix)].told
                word = random.choice(wordings) if len(plan.wishes) == 1 else wordings[-1]
                clauses.append(word.format(v=step.value, do=wish.kind.do))
    return clauses


def opening(
    random: Random,
    service: Service,
    plan: Plan,
    values: Sequence[dict[str, str]],
    told: Sequence[str],
) -> str:
    """The opening query: a greeting, the wishes, and what is told at once."""
    wishes = " and ".join(
        phrase(random, wish, value) for wish, value in zip(plan.wishes, values, strict=True)
    )
    clauses = telling(random, service, plan, told)
    random.shuffle(clauses)
    start = f"{random.choice(_GREETINGS)}{random.choice(_LEADS)} {wishes}"
    return " . ".join([start, *clauses])


def second_thought(random: Random, clauses: Sequence[str]) -> str:
    """A change of mind, and what is new."""
    return " . ".join([random.choice(_TURNS), *clauses])


def instead(random: Random, wish: WishPlan, values: dict[str, str]) -> str:
    """Another wish in place of one."""
    return f"i want to {phrase(random, wish, values)} instead"
