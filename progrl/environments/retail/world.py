"""A shop's records, generated from a seed."""

from random import Random

from progrl.environments.service.world import Record, Start, make_people, numbers

PRODUCTS = (
    "mug",
    "lamp",
    "chair",
    "shirt",
    "kettle",
    "bag",
    "clock",
    "pillow",
    "jacket",
    "bottle",
    "speaker",
    "mouse",
    "desk",
    "vase",
    "towel",
    "rug",
)
OPTIONS = ("red", "blue", "green", "black", "white", "grey", "pink", "gold")
VARIANTS = 3

# The orders of the user whom a task is about; the other users have one of each kind of two.
_STATUSES = ("pending", "pending", "delivered", "delivered", "processed", "cancelled")


def start(seed: int) -> Start:
    """Three users, six products of three variants, ten orders of two items each.

    Tables: `user`; `product` by name, its variants by item id; `item` by id; `order` by id, with
    user, status, day of arrival, item ids, address, payment, and a note of what was done.
    """
    random = Random(seed)
    people = make_people(random, 3)
    hero = next(iter(people))
    names = random.sample(PRODUCTS, 6)
    ids = numbers(random, 4, len(names) * VARIANTS)
    products: dict[str, Record] = {}
    items: dict[str, Record] = {}
    for i, name in enumerate(names):
        options, base = random.sample(OPTIONS, VARIANTS), random.randrange(10, 90)
        own = ids[i * VARIANTS : (i + 1) * VARIANTS]
        products[name] = {"items": tuple(own)}
        for j, (key, option) in enumerate(zip(own, options, strict=True)):
            items[key] = {"product": name, "option": option, "price": base + j}
    owners = [hero] * len(_STATUSES) + list(people)[1:] * 2
    statuses = [*_STATUSES, *random.sample(_STATUSES, 4)]
    orders: dict[str, Record] = {}
    for key, owner, status in zip(numbers(random, 5, len(owners)), owners, statuses, strict=True):
        first, second = random.sample(names, 2)
        orders[key] = {
            "user": owner,
            "status": status,
            "day": str(random.randrange(10, 32)),
            "items": (
                products[first]["items"][random.randrange(VARIANTS)],
                products[second]["items"][random.randrange(VARIANTS)],
            ),
            "address": people[owner]["address"],
            "pay": random.choice(people[owner]["pays"]),
            "note": "",
        }
    tables = {"user": people, "product": products, "item": items, "order": orders, "desk": {}}
    return Start(tables, hero)
