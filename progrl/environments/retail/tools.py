"""The shop's policy and tools."""

from collections.abc import Mapping, Sequence

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

POLICY = """\
You serve the users of a shop. Anyone may ask about orders and products.
Before any change, find the user, by email or by name and zip. Users change their own orders only.
Before any change, say what you will do, with the order and the new values, and ask the user to \
confirm. Make the change only after a yes; each change needs a yes of its own.
Pending orders may be cancelled (reason: mistake, delay, duplicate or unneeded), and their \
address, items and payment may be changed. An item is swapped for another option of the same \
product. Payments are those of the user's profile.
Delivered orders may be returned or exchanged, once. An item is exchanged for another option of \
the same product. A return costs 4: the refund is the price less 4.
Processed and cancelled orders cannot be changed. Say so when a user wants what is not allowed.
Hand over to a person whoever asks for it, and lost orders once the user is found.
"""


def _listed(session: Session, items: Sequence[str], label: str, more: str = "") -> str:
    """Ids and prices of items, each right after its label: to read one is to copy what follows."""
    table = session.world.tables["item"]
    ids = (" ".join((table[i][label], i, *([table[i][more]] if more else ()))) for i in items)
    prices = (f"{table[i][label]} {table[i]['price']}" for i in items)
    return f"items {' , '.join(ids)} ; prices {' , '.join(prices)}"


def _get_order(session: Session, arguments: Mapping[str, str]) -> Result:
    key = arguments["order"]
    order = session.world.get("order", key)
    if order is None:
        raise Refusal(f"no order {key}")
    text = (
        f"order {key} {order['status']} day {order['day']} ; user {order['user']} ; "
        f"{_listed(session, order['items'], 'product', 'option')} ; "
        f"to {order['address']} ; pay {order['pay']}"
    )
    return Result(text + (f" ; {order['note']}" if order["note"] else ""), f"get_order:{key}")


def _get_product(session: Session, arguments: Mapping[str, str]) -> Result:
    name = arguments["product"].strip().lower()
    product = session.world.get("product", name)
    if product is None:
        raise Refusal(f"no product {name}")
    text = f"product {name} ; {_listed(session, product['items'], 'option')}"
    return Result(text, f"get_product:{name}")


def _changeable(session: Session, key: str, status: str) -> Record:
    order = session.own("order", key)
    if order["status"] != status:
        raise Refusal(f"order {key} is {order['status']} , not {status}")
    return order


def _cancel(session: Session, arguments: Mapping[str, str]) -> Result:
    key, reason = arguments["order"], arguments["reason"]
    _changeable(session, key, "pending")
    session.world.put("order", key, status="cancelled", note=f"reason {reason}")
    return Result(f"order {key} cancelled", f"cancel_order:{key}:{reason}")


def _modify_address(session: Session, arguments: Mapping[str, str]) -> Result:
    key, address = arguments["order"], " ".join(arguments["address"].lower().split())
    _changeable(session, key, "pending")
    if not address:
        raise Refusal("address is empty")
    session.world.put("order", key, address=address)
    return Result(f"order {key} to {address}", f"modify_address:{key}:{address}")


def _modify_payment(session: Session, arguments: Mapping[str, str]) -> Result:
    key, pay = arguments["order"], arguments["pay"]
    order = _changeable(session, key, "pending")
    if pay not in session.world.tables["user"][order["user"]]["pays"]:
        raise Refusal(f"the user has no {pay}")
    session.world.put("order", key, pay=pay)
    return Result(f"order {key} pay {pay}", f"modify_payment:{key}:{pay}")


def _held(order: Record, text: str) -> list[str]:
    """The item ids in `text`, all of them the order's."""
    items = text.split()
    if not items:
        raise Refusal("no items")
    for item in items:
        if items.count(item) > order["items"].count(item):
            raise Refusal(f"item {item} is not in the order")
    return items


def _swaps(session: Session, order: Record, arguments: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs of an item of the order and another of the same product."""
    old, new = _held(order, arguments["items"]), arguments["new_items"].split()
    if len(old) != len(new):
        raise Refusal("items and new_items differ in number")
    table = session.world.tables["item"]
    for before, after in zip(old, new, strict=True):
        if after not in table or table[after]["product"] != table[before]["product"]:
            raise Refusal(f"{after} is no other option of {before}")
        if after == before:
            raise Refusal(f"{after} is what the order has")
    return sorted(zip(old, new, strict=True))


def _modify_items(session: Session, arguments: Mapping[str, str]) -> Result:
    key = arguments["order"]
    order = _changeable(session, key, "pending")
    swaps = dict(_swaps(session, order, arguments))
    items = tuple(swaps.get(item, item) for item in order["items"])
    session.world.put("order", key, items=items)
    done = " ".join(f"{a}>{b}" for a, b in swaps.items())
    return Result(f"order {key} swapped {done}", f"modify_items:{key}:{done}")


def _return_items(session: Session, arguments: Mapping[str, str]) -> Result:
    key = arguments["order"]
    items = " ".join(sorted(_held(_changeable(session, key, "delivered"), arguments["items"])))
    session.world.put("order", key, status="returned", note=f"return {items}")
    return Result(f"order {key} returned {items}", f"return_items:{key}:{items}")


def _exchange_items(session: Session, arguments: Mapping[str, str]) -> Result:
    key = arguments["order"]
    swaps = _swaps(session, _changeable(session, key, "delivered"), arguments)
    done = " ".join(f"{a}>{b}" for a, b in swaps)
    session.world.put("order", key, status="exchanged", note=f"exchange {done}")
    return Result(f"order {key} exchanged {done}", f"exchange_items:{key}:{done}")


def _only_order(session: Session, arguments: Mapping[str, str]) -> Groups:
    return ((arguments["order"],),)


def _address(session: Session, arguments: Mapping[str, str]) -> Groups:
    return ((arguments["order"],), (arguments["address"],))


def _payment(session: Session, arguments: Mapping[str, str]) -> Groups:
    return ((arguments["order"],), (arguments["pay"],))


def _items(session: Session, arguments: Mapping[str, str]) -> Groups:
    """The order, each item by id or product, each new item by id or option."""
    table = session.world.tables["item"]
    groups: list[tuple[str, ...]] = [(arguments["order"],)]
    for name, field in (("items", "product"), ("new_items", "option")):
        for item in arguments.get(name, "").split():
            groups.append((item, table[item][field]) if item in table else (item,))
    return tuple(groups)


_ORDER = {"order": "order id"}
_ITEMS = {**_ORDER, "items": "item ids, separated by spaces"}
_SWAP = {**_ITEMS, "new_items": "ids of the new items, in the same order"}

CANCEL = ("cancel", "cancelling", "cancellation")
REDIRECT = ("redirect", "address", "send", "ship")
REBILL = ("rebill", "payment", "pay", "charge")
SWAP = ("swap", "change", "modify", "replace")
RETURN = ("return", "send back", "returning")
EXCHANGE = ("exchange", "exchanging")

TOOLS = (
    *SHARED_TOOLS,
    Tool(spec("get_order", "See an order.", _ORDER), _get_order),
    Tool(
        spec("get_product", "See a product's options and prices.", {"product": "its name"}),
        _get_product,
    ),
    Tool(
        spec("cancel_order", "Cancel a pending order.", {**_ORDER, "reason": REASONS}, writes=True),
        _cancel,
        CANCEL,
        _only_order,
    ),
    Tool(
        spec(
            "modify_address",
            "Send a pending order to another address.",
            {**_ORDER, "address": "number and street"},
            writes=True,
        ),
        _modify_address,
        REDIRECT,
        _address,
    ),
    Tool(
        spec("modify_items", "Swap items of a pending order.", _SWAP, writes=True),
        _modify_items,
        SWAP,
        _items,
    ),
    Tool(
        spec(
            "modify_payment",
            "Pay a pending order in another way.",
            {**_ORDER, "pay": "a payment of the user's"},
            writes=True,
        ),
        _modify_payment,
        REBILL,
        _payment,
    ),
    Tool(
        spec("return_items", "Take back items of a delivered order.", _ITEMS, writes=True),
        _return_items,
        RETURN,
        _items,
    ),
    Tool(
        spec("exchange_items", "Exchange items of a delivered order.", _SWAP, writes=True),
        _exchange_items,
        EXCHANGE,
        _items,
    ),
)
