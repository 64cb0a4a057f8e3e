"""Wishes and facts that every service desk knows, in the same words in each domain."""

from collections.abc import Mapping
from random import Random

from progrl.environments.service.plans import IDENTIFY, Call, Family, Form, Kind
from progrl.environments.service.tools import TOPICS, arithmetic
from progrl.environments.service.world import Start

REASONS = ("mistake", "delay", "duplicate", "unneeded")

SHARED_KINDS = (
    Kind(
        name="points",
        phrases=("know my points", "see how many points i have", "check my point balance"),
        do="check",
        script=(IDENTIFY, Call("find_user", {}, "find_user:{user}")),
        closer="you have {points} points",
        tell=("{points}",),
        tell_verbs=("points", "point"),
    ),
    Kind(
        name="compute",
        phrases=("know what {expression} is", "compute {expression}", "work out {expression}"),
        do="compute",
        script=(Call("calculate", {"expression": "{expression}"}, "calculate:{result}"),),
        closer="the result is {result}",
        tell=("{result}",),
        tell_verbs=("result", "is", "equals", "="),
    ),
    Kind(
        name="person",
        phrases=(
            "talk to a person about {topic}",
            "speak with someone about {topic}",
            "be put through to a person about {topic}",
        ),
        do="transfer",
        script=(),
        closer="a person will help you",
        write=Call("transfer_to_human", {"topic": "{topic}"}, "transfer_to_human:{topic}:"),
    ),
)

SHARED_FORMS = {
    "reason": Form(
        "what is the reason ?",
        ("reason", "why"),
        ("the reason is {v}", "reason {v}"),
        "reason",
    ),
}

SHARED_FAMILIES = (
    Family("points", 1, ("points",), (0, 0)),
    Family("compute", 1, ("compute",), (0, 0)),
    Family("person", 1, ("person",), (0, 0)),
    Family("points_ask", 2, ("points",), (1, 1)),
)


def record_form(noun: str) -> Form:
    """How the record that a wish is about, an order say, is asked for and told."""
    return Form(
        f"what is the {noun} to {{do}} ?",
        (f"{noun} to {{do}}", f"which {noun}", f"{noun} id", f"{noun} number", f"{noun} ids"),
        (f"it is {noun} {{v}}", f"{noun} {{v}}", f"the {noun} to {{do}} is {{v}}"),
        f"{noun} to {{do}}",
    )


def fill_shared(random: Random, start: Start, kind: str) -> Mapping[str, str] | None:
    """The values of a wish of a shared kind; None for any other kind."""
    match kind:
        case "points":
            points = start.tables["user"][start.hero]["points"]
            return {"user": start.hero, "points": points}
        case "compute":
            sign = random.choice("+-")
            high, low = random.randrange(500, 1000), random.randrange(10, 500)
            expression = f"{high} {sign} {low}"
            return {"expression": expression, "result": arithmetic(expression)}
        case "person":
            return {"topic": random.choice(TOPICS[1:])}
    return None
