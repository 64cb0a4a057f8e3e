"""An airline's records, generated from a seed."""

from random import Random

from progrl.environments.service.world import Record, Start, make_people, numbers

CITIES = (
    "rome",
    "oslo",
    "paris",
    "cairo",
    "lima",
    "delhi",
    "tokyo",
    "miami",
    "berlin",
    "lisbon",
    "dublin",
    "athens",
)
ROUTES, FLIGHTS = 5, 3

# Status and fare of the reservations of the user whom a task is about.
_RESERVATIONS = (
    ("booked", "flex"),
    ("booked", "flex"),
    ("booked", "flex"),
    ("booked", "basic"),
    ("flown", "flex"),
    ("flown", "basic"),
    ("cancelled", "flex"),
)


def start(seed: int) -> Start:
    """Three users, five routes of three flights, eleven reservations.

    Tables: `user`; `flight` by id, with origin, destination, day and price; `reservation` by id,
    with user, status, fare, flight, price paid, bags, passenger, and a note of what was done.
    """
    random = Random(seed)
    people = make_people(random, 3)
    hero = next(iter(people))
    flights: dict[str, Record] = {}
    ids = numbers(random, 3, ROUTES * FLIGHTS)
    cities = random.sample(CITIES, ROUTES + 1)
    for i in range(ROUTES):
        for j, day in enumerate(random.sample(range(10, 32), FLIGHTS)):
            flights[ids[i * FLIGHTS + j]] = {
                "origin": cities[i],
                "destination": cities[i + 1],
                "day": str(day),
                "price": random.randrange(110, 500),
            }
    owners = [hero] * len(_RESERVATIONS) + list(people)[1:] * 2
    states = [*_RESERVATIONS, *random.sample(_RESERVATIONS, 4)]
    reservations: dict[str, Record] = {}
    for key, owner, state in zip(numbers(random, 5, len(owners)), owners, states, strict=True):
        flight = ids[random.randrange(len(ids))]
        reservations[key] = {
            "user": owner,
            "status": state[0],
            "fare": state[1],
            "flight": flight,
            "price": flights[flight]["price"],
            "bags": str(random.randrange(3)),
            "passenger": people[owner]["name"],
            "note": "",
        }
    tables = {"user": people, "flight": flights, "reservation": reservations, "desk": {}}
    return Start(tables, hero)
