"""What the airline's users want: kinds of wishes, facts, families of tasks."""

from random import Random

from progrl.environments.airline.tools import BAGS
from progrl.environments.service.plans import IDENTIFY, Call, Family, Form, Kind, Values
from progrl.environments.service.shared import (
    REASONS,
    SHARED_FAMILIES,
    SHARED_FORMS,
    SHARED_KINDS,
    fill_shared,
    record_form,
)
from progrl.environments.service.world import FIRST_NAMES, LAST_NAMES, Record, Start

CANCEL_FEE = 20

_HELD = {"reservation": "{reservation}"}
_GET = Call("get_reservation", _HELD, "get_reservation:{reservation}")
_SEARCH = Call(
    "search_flights",
    {"origin": "{origin}", "destination": "{destination}"},
    "search_flights:{origin}:{destination}",
)
_CANCEL = Call(
    "cancel_reservation",
    {**_HELD, "reason": "{reason}"},
    "cancel_reservation:{reservation}:{reason}",
)
_CANCEL_PHRASES = ("cancel a reservation", "call off a reservation", "cancel my flight")

KINDS = (
    *SHARED_KINDS,
    Kind(
        name="status",
        phrases=("know the day of my flight", "check my reservation", "see when i fly"),
        do="check",
        script=("reservation", _GET),
        closer="reservation {reservation} is flight {flight} , day {day}",
        tell=("{flight}", "{day}"),
        tell_verbs=("flight", "reservation", "day"),
    ),
    Kind(
        name="fare",
        phrases=("know the price of a flight", "see what a flight costs", "find a flight"),
        do="price",
        script=("origin", "destination", "day", _SEARCH),
        closer="flight {flight} costs {price}",
        tell=("{flight}", "{price}"),
        tell_verbs=("flight", "costs", "price"),
    ),
    Kind(
        name="cancel_refused",
        phrases=_CANCEL_PHRASES,
        do="cancel",
        script=("reservation", _GET),
        closer="cannot cancel reservation {reservation} , it is {obstacle}",
        tell=("{reservation}", "{obstacle}"),
        tell_verbs=("cannot", "can not", "unable", "not possible"),
    ),
    Kind(
        name="cancel",
        phrases=_CANCEL_PHRASES,
        do="cancel",
        script=("reservation", _GET, IDENTIFY, "reason"),
        closer="reservation {reservation} is cancelled",
        write=_CANCEL,
        mentions=("{reservation}", "{reason}"),
        confirm="cancel reservation {reservation} , reason {reason} . confirm ?",
        flexible="reason",
    ),
    Kind(
        name="refund",
        phrases=(
            "cancel a reservation and know the refund",
            "get the refund for a reservation",
            "call off a reservation and hear the refund",
        ),
        do="cancel",
        script=(
            "reservation",
            _GET,
            IDENTIFY,
            "reason",
            Call("calculate", {"expression": "{price} - {fee}"}, "calculate:{refund}"),
        ),
        closer="reservation {reservation} is cancelled , refund {refund}",
        write=_CANCEL,
        mentions=("{reservation}", "{reason}"),
        confirm="cancel reservation {reservation} , reason {reason} . confirm ?",
        tell=("{refund}",),
        tell_verbs=("refund", "refunded"),
        flexible="reason",
    ),
    Kind(
        name="bags",
        phrases=("change my bags", "set the number of bags", "take other luggage"),
        do="pack",
        script=("reservation", _GET, IDENTIFY, "bags"),
        closer="reservation {reservation} has {bags} bags",
        write=Call("change_bags", {**_HELD, "bags": "{bags}"}, "change_bags:{reservation}:{bags}"),
        mentions=("{reservation}", "{bags}"),
        confirm="pack reservation {reservation} with {bags} bags . confirm ?",
        flexible="bags",
    ),
    Kind(
        name="rename",
        phrases=("rename a reservation", "change the passenger", "give a reservation away"),
        do="rename",
        script=("reservation", _GET, IDENTIFY, "passenger"),
        closer="reservation {reservation} is for {passenger}",
        write=Call(
            "change_passenger",
            {**_HELD, "passenger": "{passenger}"},
            "change_passenger:{reservation}:{passenger}",
        ),
        mentions=("{reservation}", "{passenger}"),
        confirm="rename reservation {reservation} to {passenger} . confirm ?",
        flexible="passenger",
    ),
    Kind(
        name="rebook",
        phrases=("rebook a flight", "change the day of my flight", "move a reservation"),
        do="rebook",
        script=("reservation", _GET, IDENTIFY, "day", _SEARCH),
        closer="reservation {reservation} is on day {day}",
        write=Call(
            "change_flight",
            {**_HELD, "flight": "{flight}"},
            "change_flight:{reservation}:{flight}",
        ),
        mentions=("{reservation}", "{day}"),
        confirm="rebook reservation {reservation} to day {day} flight {flight} . confirm ?",
        flexible="day",
    ),
    Kind(
        name="lost",
        phrases=("report a lost bag", "tell you that my bag never came", "find a lost bag"),
        do="find",
        script=("reservation", _GET, IDENTIFY),
        closer="a person will look for the bag of flight {flight}",
        write=Call(
            "transfer_to_human",
            {"topic": "lost", "about": "{reservation}"},
            "transfer_to_human:lost:{reservation}",
        ),
        tell=("{flight}",),
        tell_verbs=("person",),
    ),
)

FORMS = {
    **SHARED_FORMS,
    "reservation": record_form("reservation"),
    "origin": Form(
        "where do you start ?",
        ("you start", "from where", "origin", "which city from", "departure city"),
        ("from {v}", "i start in {v}"),
        "origin",
    ),
    "destination": Form(
        "where do you go ?",
        ("you go", "to where", "destination", "which city to"),
        ("to {v}", "i go to {v}"),
        "destination",
    ),
    "day": Form(
        "what is the day ?",
        ("day", "date", "when"),
        ("on day {v}", "the day is {v}"),
        "day",
    ),
    "bags": Form(
        "how many bags ?",
        ("how many bags", "number of bags", "how much luggage"),
        ("i have {v} bags", "make it {v} bags"),
        "number of bags",
    ),
    "passenger": Form(
        "what is the new passenger ?",
        ("new passenger", "which passenger", "name of the passenger", "passenger's name"),
        ("it is for {v}", "the new passenger is {v}"),
        "new passenger",
    ),
}

FAMILIES = (
    *SHARED_FAMILIES,
    Family("reservation_status", 1, ("status",), (0, 0)),
    Family("fare", 1, ("fare",), (0, 0)),
    Family("fare_ask", 2, ("fare",), (1, 2)),
    Family("status_ask", 2, ("status",), (1, 1)),
    Family("cancel", 2, ("cancel",), (0, 0)),
    Family("cancel_refused", 2, ("cancel_refused",), (0, 1)),
    Family("bags", 3, ("bags",), (1, 2)),
    Family("rename", 3, ("rename",), (1, 2)),
    Family("lost", 3, ("lost",), (1, 2)),
    Family("rebook", 4, ("rebook",), (2, 3)),
    Family("refund", 4, ("refund",), (2, 3)),
    Family("rebook_and_bags", 5, ("rebook", "bags"), (4, 5)),
    Family("refund_and_rename", 5, ("refund", "rename"), (4, 5)),
)

INSTEAD = {
    "cancel": ("rebook", "rename"),
    "refund": ("rebook", "bags"),
    "rebook": ("refund", "rename"),
    "bags": ("cancel", "rename"),
    "rename": ("cancel", "bags"),
}


def fill(
    random: Random, start: Start, kind: str, fixed: Values, taken: frozenset[str]
) -> dict[str, str] | None:
    """Draw the values of a wish; `fixed` ones stay. None where no reservation fits."""
    shared = fill_shared(random, start, kind)
    if shared is not None:
        return dict(shared)
    flights = start.tables["flight"]
    if kind == "fare":
        number = random.choice(list(flights))
        flight = flights[number]
        values = {name: flight[name] for name in ("origin", "destination", "day")}
        return {**values, "flight": number, "price": str(flight["price"])}
    key = fixed.get("reservation") or _reservation(random, start, kind, taken)
    if key is None or not _fits(kind, start.tables["reservation"][key]):
        return None
    about = _about(random, start, kind, start.tables["reservation"][key], fixed)
    return {"reservation": key, **about}


def _fits(kind: str, held: Record) -> bool:
    booked: bool = held["status"] == "booked"
    flex: bool = held["fare"] == "flex"
    match kind:
        case "status":
            return True
        case "cancel_refused":
            return not (booked and flex)
        case "lost":
            return str(held["status"]) == "flown"
    return booked and flex


def _reservation(random: Random, start: Start, kind: str, taken: frozenset[str]) -> str | None:
    keys = [
        key
        for key, held in start.tables["reservation"].items()
        if held["user"] == start.hero and key not in taken and _fits(kind, held)
    ]
    return random.choice(keys) if keys else None


def _about(random: Random, start: Start, kind: str, held: Record, fixed: Values) -> dict[str, str]:
    flights = start.tables["flight"]
    flight = flights[held["flight"]]
    match kind:
        case "cancel_refused":
            return {"obstacle": "basic" if held["status"] == "booked" else held["status"]}
        case "cancel" | "refund":
            refund = str(held["price"] - CANCEL_FEE)
            money = {"price": str(held["price"]), "fee": str(CANCEL_FEE), "refund": refund}
            return {"reason": fixed.get("reason") or random.choice(REASONS), **money}
        case "bags":
            other = [bags for bags in BAGS if bags != held["bags"]]
            return {"bags": fixed.get("bags") or random.choice(other)}
        case "rename":
            first = random.choice([n for n in FIRST_NAMES if not held["passenger"].startswith(n)])
            name = f"{first} {random.choice(LAST_NAMES)}"
            return {"passenger": fixed.get("passenger") or name}
        case "rebook":
            route = (flight["origin"], flight["destination"])
            keys = [
                key
                for key, other in flights.items()
                if (other["origin"], other["destination"]) == route and other is not flight
            ]
            new = random.choice(keys)
            ends = {"origin": route[0], "destination": route[1]}
            return {**ends, "flight": new, "day": flights[new]["day"]}
    return {"flight": held["flight"], "day": flight["day"]}
