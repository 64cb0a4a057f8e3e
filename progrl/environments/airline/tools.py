"""The airline's policy and tools."""

from collections.abc import Callable, Mapping

from progrl.environments.service.shared import REASONS
from progrl.environments.service.tools import (
    SHARED_TOOLS,
    Groups,
    Refusal,
    Result,
    Session,
    Tool,
    spec,
)
from progrl.environments.service.world import Record

BAGS = ("0", "1", "2", "3", "4", "5")

POLICY = """\
You serve the passengers of an airline. Anyone may ask about flights and reservations.
Before any change, find the user, by email or by name and zip. Users change their own \
reservations only.
Before any change, say what you will do, with the reservation and the new values, and ask the \
user to confirm. Make the change only after a yes; each change needs a yes of its own.
Booked flex reservations may be cancelled (reason: mistake, delay, duplicate or unneeded) for a \
fee of 20 (the refund is the price less 20), moved to another day's flight of the same route, or \
given to another passenger. Bags of any booked reservation may be changed.
Basic reservations cannot be cancelled, moved or given away; flown and cancelled ones cannot be \
changed at all. Say so when a user wants what is not allowed.
Hand over to a person whoever asks for it, and lost bags once the user is found.
"""


def _get_reservation(session: Session, arguments: Mapping[str, str]) -> Result:
    key = arguments["reservation"]
    held = session.world.get("reservation", key)
    if held is None:
        raise Refusal(f"no reservation {key}")
    flight = session.world.tables["flight"][held["flight"]]
    text = (
        f"reservation {key} {held['status']} {held['fare']} ; user {held['user']} ; "
        f"flight {held['flight']} {flight['origin']} {flight['destination']} day {flight['day']} ; "
        f"price {held['price']} ; bags {held['bags']} ; for {held['passenger']}"
    )
    note = f" ; {held['note']}" if held["note"] else ""
    return Result(text + note, f"get_reservation:{key}")


def _search(session: Session, arguments: Mapping[str, str]) -> Result:
    origin, destination = (arguments[k].strip().lower() for k in ("origin", "destination"))
    found = [
        f"day {flight['day']} flight {key} price {flight['price']}"
        for key, flight in session.world.tables["flight"].items()
        if flight["origin"] == origin and flight["destination"] == destination
    ]
    if not found:
        raise Refusal(f"no flights {origin} {destination}")
    text = f"flights {origin} {destination} ; {' ; '.join(found)}"
    return Result(text, f"search_flights:{origin}:{destination}")


def _changeable(session: Session, key: str, flex: bool = True) -> Record:
    held = session.own("reservation", key)
    if held["status"] != "booked":
        raise Refusal(f"reservation {key} is {held['status']} , not booked")
    if flex and held["fare"] != "flex":
        raise Refusal(f"reservation {key} is {held['fare']} , not flex")
    return held


def _cancel(session: Session, arguments: Mapping[str, str]) -> Result:
    key, reason = arguments["reservation"], arguments["reason"]
    _changeable(session, key)
    session.world.put("reservation", key, status="cancelled", note=f"reason {reason}")
    return Result(f"reservation {key} cancelled", f"cancel_reservation:{key}:{reason}")


def _change_flight(session: Session, arguments: Mapping[str, str]) -> Result:
    key, new = arguments["reservation"], arguments["flight"]
    held, flights = _changeable(session, key), session.world.tables["flight"]
    if new == held["flight"]:
        raise Refusal(f"the reservation is for flight {new}")
    route = [
        flights.get(flight, {}).get(end)
        for flight in (new, held["flight"])
        for end in ("origin", "destination")
    ]
    if route[:2] != route[2:]:
        raise Refusal(f"no flight {new} of this route")
    session.world.put("reservation", key, flight=new, price=flights[new]["price"])
    return Result(f"reservation {key} flight {new}", f"change_flight:{key}:{new}")


def _change_bags(session: Session, arguments: Mapping[str, str]) -> Result:
    key, bags = arguments["reservation"], arguments["bags"]
    _changeable(session, key, flex=False)
    session.world.put("reservation", key, bags=bags)
    return Result(f"reservation {key} bags {bags}", f"change_bags:{key}:{bags}")


def _change_passenger(session: Session, arguments: Mapping[str, str]) -> Result:
    key, name = arguments["reservation"], " ".join(arguments["passenger"].lower().split())
    _changeable(session, key)
    if not name:
        raise Refusal("passenger is empty")
    session.world.put("reservation", key, passenger=name)
    return Result(f"reservation {key} for {name}", f"change_passenger:{key}:{name}")


def _naming(*names: str) -> Callable[[Session, Mapping[str, str]], Groups]:
    return lambda session, arguments: tuple((arguments[name],) for name in names)


def _flight(session: Session, arguments: Mapping[str, str]) -> Groups:
    """The reservation, and the flight by id or day."""
    flight = session.world.tables["flight"].get(arguments["flight"])
    days = (flight["day"],) if flight else ()
    return ((arguments["reservation"],), (arguments["flight"], *days))


_RESERVATION = {"reservation": "reservation id"}

CANCEL = ("cancel", "cancelling", "cancellation")
REBOOK = ("rebook", "move", "change", "flight")
BAG = ("bag", "bags", "luggage", "baggage")
RENAME = ("rename", "passenger", "name", "give")

TOOLS = (
    *SHARED_TOOLS,
    Tool(spec("get_reservation", "See a reservation.", _RESERVATION), _get_reservation),
    Tool(
        spec(
            "search_flights",
            "See the flights of a route.",
            {"origin": "city", "destination": "city"},
        ),
        _search,
    ),
    Tool(
        spec(
            "cancel_reservation",
            "Cancel a booked flex reservation.",
            {**_RESERVATION, "reason": REASONS},
            writes=True,
        ),
        _cancel,
        CANCEL,
        _naming("reservation"),
    ),
    Tool(
        spec(
            "change_flight",
            "Move a booked flex reservation to another flight of its route.",
            {**_RESERVATION, "flight": "flight id"},
            writes=True,
        ),
        _change_flight,
        REBOOK,
        _flight,
    ),
    Tool(
        spec(
            "change_bags",
            "Set the number of bags of a booked reservation.",
            {**_RESERVATION, "bags": BAGS},
            writes=True,
        ),
        _change_bags,
        BAG,
        _naming("reservation", "bags"),
    ),
    Tool(
        spec(
            "change_passenger",
            "Give a booked flex reservation to another passenger.",
            {**_RESERVATION, "passenger": "first and last name"},
            writes=True,
        ),
        _change_passenger,
        RENAME,
        _naming("reservation", "passenger"),
    ),
)
