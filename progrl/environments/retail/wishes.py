"""What the shop's users want: kinds of wishes, facts, families of tasks."""

from collections.abc import Mapping
from random import Random

from progrl.environments.service.plans import IDENTIFY, Call, Family, Form, Kind, Values
from progrl.environments.service.shared import (
    REASONS,
    SHARED_FAMILIES,
    SHARED_FORMS,
    SHARED_KINDS,
    fill_shared,
    record_form,
)
from progrl.environments.service.world import Start, address

RETURN_FEE = 4

_ORDER = {"order": "{order}"}
_ITEM = {**_ORDER, "items": "{item_id}"}
_SWAP = {**_ITEM, "new_items": "{new_id}"}
_GET_ORDER = Call("get_order", _ORDER, "get_order:{order}")
_GET_PRODUCT = Call("get_product", {"product": "{item}"}, "get_product:{item}")
_REFUSE = ("cannot", "can not", "unable", "not possible")

_KNOW = (
    Kind(
        name="status",
        phrases=("know the status of my order", "check my order", "see where my order is"),
        do="check",
        script=("order", _GET_ORDER),
        closer="order {order} is {status} , day {day}",
        tell=("{status}", "{day}"),
        tell_verbs=("order", "it", "status", "is"),
    ),
    Kind(
        name="price",
        phrases=(
            "know the price of a {option} {item}",
            "know what a {option} {item} costs",
            "buy a {option} {item} , what does it cost",
        ),
        do="price",
        script=(_GET_PRODUCT,),
        closer="the {option} {item} costs {price}",
        tell=("{price}",),
        tell_verbs=("costs", "cost", "price", "is"),
    ),
    Kind(
        name="total",
        phrases=("know the total of my order", "know what i paid for my order", "get a total"),
        do="total",
        script=(
            "order",
            _GET_ORDER,
            Call("calculate", {"expression": "{sum}"}, "calculate:{total}"),
        ),
        closer="the total is {total}",
        tell=("{total}",),
        tell_verbs=("total", "sum", "paid", "is"),
    ),
    Kind(
        name="cancel_refused",
        phrases=("cancel an order", "stop an order", "call off an order"),
        do="cancel",
        script=("order", _GET_ORDER),
        closer="cannot cancel order {order} , it is {status}",
        tell=("{order}", "{status}"),
        tell_verbs=_REFUSE,
    ),
    Kind(
        name="return_refused",
        phrases=("return an item", "send back an item", "give back an item"),
        do="return",
        script=("order", _GET_ORDER),
        closer="cannot return order {order} , it is {status}",
        tell=("{order}", "{status}"),
        tell_verbs=_REFUSE,
    ),
)

_ACT = (
    Kind(
        name="cancel",
        phrases=("cancel an order", "stop an order", "call off an order"),
        do="cancel",
        script=("order", _GET_ORDER, IDENTIFY, "reason"),
        closer="order {order} is cancelled",
        write=Call(
            "cancel_order", {**_ORDER, "reason": "{reason}"}, "cancel_order:{order}:{reason}"
        ),
        mentions=("{order}", "{reason}"),
        confirm="cancel order {order} , reason {reason} . confirm ?",
        flexible="reason",
    ),
    Kind(
        name="redirect",
        phrases=("redirect an order", "change the address of an order", "move an order"),
        do="redirect",
        script=("order", _GET_ORDER, IDENTIFY, "address"),
        closer="order {order} goes to {address}",
        write=Call(
            "modify_address",
            {**_ORDER, "address": "{address}"},
            "modify_address:{order}:{address}",
        ),
        mentions=("{order}", "{address}"),
        confirm="redirect order {order} to {address} . confirm ?",
        flexible="address",
    ),
    Kind(
        name="rebill",
        phrases=("rebill an order", "change the payment of an order", "pay an order differently"),
        do="rebill",
        script=("order", _GET_ORDER, IDENTIFY, "pay"),
        closer="order {order} is paid by {pay}",
        write=Call("modify_payment", {**_ORDER, "pay": "{pay}"}, "modify_payment:{order}:{pay}"),
        mentions=("{order}", "{pay}"),
        confirm="rebill order {order} to {pay} . confirm ?",
        flexible="pay",
    ),
    Kind(
        name="return",
        phrases=("return an item", "send back an item", "give back an item"),
        do="return",
        script=("order", _GET_ORDER, IDENTIFY, "item"),
        closer="the {item} is returned",
        write=Call("return_items", _ITEM, "return_items:{order}:{item_id}"),
        mentions=("{order}", "{item}"),
        confirm="return {item} {item_id} of order {order} . confirm ?",
        flexible="item",
    ),
    Kind(
        name="refund",
        phrases=(
            "return an item and know the refund",
            "get the refund for an item",
            "send back an item and hear the refund",
        ),
        do="return",
        script=(
            "order",
            _GET_ORDER,
            IDENTIFY,
            "item",
            Call("calculate", {"expression": "{price} - {fee}"}, "calculate:{refund}"),
        ),
        closer="the {item} is returned , refund {refund}",
        write=Call("return_items", _ITEM, "return_items:{order}:{item_id}"),
        mentions=("{order}", "{item}"),
        confirm="return {item} {item_id} of order {order} . confirm ?",
        tell=("{refund}",),
        tell_verbs=("refund", "refunded"),
        flexible="item",
    ),
    Kind(
        name="exchange",
        phrases=("exchange an item", "exchange something", "get an item exchanged"),
        do="exchange",
        script=("order", _GET_ORDER, IDENTIFY, "item", "option", _GET_PRODUCT),
        closer="the {item} is exchanged for {option}",
        write=Call("exchange_items", _SWAP, "exchange_items:{order}:{item_id}>{new_id}"),
        mentions=("{order}", "{item}", "{option}"),
        confirm="exchange {item} {item_id} of order {order} for {option} {new_id} . confirm ?",
        flexible="option",
    ),
    Kind(
        name="swap",
        phrases=("swap an item", "swap something in an order", "get another option of an item"),
        do="swap",
        script=("order", _GET_ORDER, IDENTIFY, "item", "option", _GET_PRODUCT),
        closer="the {item} is swapped for {option}",
        write=Call("modify_items", _SWAP, "modify_items:{order}:{item_id}>{new_id}"),
        mentions=("{order}", "{item}", "{option}"),
        confirm="swap {item} {item_id} of order {order} for {option} {new_id} . confirm ?",
        flexible="option",
    ),
    Kind(
        name="lost",
        phrases=("report a lost order", "tell you that an order never came", "find a lost order"),
        do="find",
        script=("order", _GET_ORDER, IDENTIFY),
        closer="a person will look for order {order} , sent to {address}",
        write=Call(
            "transfer_to_human",
            {"topic": "lost", "about": "{order}"},
            "transfer_to_human:lost:{order}",
        ),
        tell=("{address}",),
        tell_verbs=("person",),
    ),
)

KINDS = (*SHARED_KINDS, *_KNOW, *_ACT)

FORMS = {
    **SHARED_FORMS,
    "order": record_form("order"),
    "item": Form(
        "what is the item to {do} ?",
        ("item to {do}", "which item", "what item", "which product"),
        ("it is the {v}", "the {v}", "the item to {do} is the {v}"),
        "item to {do}",
    ),
    "option": Form(
        "what is the new option ?",
        ("new option", "which option", "which color", "what color"),
        ("i want {v}", "make it {v}", "the new option is {v}"),
        "new option",
    ),
    "address": Form(
        "what is the new address ?",
        ("new address", "which address", "what address"),
        ("send it to {v}", "the new address is {v}"),
        "new address",
    ),
    "pay": Form(
        "what is the new payment ?",
        ("new payment", "which payment", "what payment", "payment method"),
        ("use {v}", "the new payment is {v}"),
        "new payment",
    ),
}

FAMILIES = (
    *SHARED_FAMILIES,
    Family("order_status", 1, ("status",), (0, 0)),
    Family("price", 1, ("price",), (0, 0)),
    Family("status_ask", 2, ("status",), (1, 1)),
    Family("total", 2, ("total",), (0, 1)),
    Family("cancel", 2, ("cancel",), (0, 0)),
    Family("cancel_refused", 2, ("cancel_refused",), (0, 1)),
    Family("return_refused", 2, ("return_refused",), (0, 1)),
    Family("redirect", 3, ("redirect",), (1, 2)),
    Family("rebill", 3, ("rebill",), (1, 2)),
    Family("return", 3, ("return",), (1, 2)),
    Family("lost", 3, ("lost",), (1, 2)),
    Family("exchange", 4, ("exchange",), (3, 4)),
    Family("swap", 4, ("swap",), (3, 4)),
    Family("refund", 4, ("refund",), (2, 3)),
    Family("cancel_and_redirect", 5, ("cancel", "redirect"), (4, 5)),
    Family("return_and_exchange", 5, ("return", "exchange"), (4, 6)),
    Family("refund_and_rebill", 5, ("refund", "rebill"), (4, 5)),
)

INSTEAD = {
    "cancel": ("redirect", "rebill"),
    "redirect": ("cancel", "rebill"),
    "rebill": ("redirect", "cancel"),
    "return": ("exchange",),
    "refund": ("exchange",),
    "exchange": ("return",),
    "swap": ("redirect", "cancel"),
}

_STATUSES: Mapping[str, tuple[str, ...]] = {
    "status": ("pending", "delivered", "processed", "cancelled"),
    "total": ("pending", "delivered", "processed"),
    "cancel_refused": ("delivered", "processed", "cancelled"),
    "return_refused": ("pending", "processed", "cancelled"),
    **dict.fromkeys(("cancel", "redirect", "rebill", "swap"), ("pending",)),
    **dict.fromkeys(("return", "refund", "exchange", "lost"), ("delivered",)),
}


def fill(
    random: Random, start: Start, kind: str, fixed: Values, taken: frozenset[str]
) -> dict[str, str] | None:
    """Draw the values of a wish; `fixed` ones stay. None where no order of the user's fits."""
    shared = fill_shared(random, start, kind)
    if shared is not None:
        return dict(shared)
    if kind == "price":
        key = random.choice(list(start.tables["item"]))
        item = start.tables["item"][key]
        values = {"item": item["product"], "option": item["option"]}
        return {**values, "price": str(item["price"])}
    order = fixed.get("order") or _order(random, start, _STATUSES[kind], taken)
    if order is None or start.tables["order"][order]["status"] not in _STATUSES[kind]:
        return None
    about = _about(random, start, kind, order, fixed)
    return None if about is None else {"order": order, **about}


def _order(
    random: Random, start: Start, statuses: tuple[str, ...], taken: frozenset[str]
) -> str | None:
    status = random.choice(statuses)
    keys = [
        key
        for key, order in start.tables["order"].items()
        if order["user"] == start.hero and order["status"] == status and key not in taken
    ]
    return random.choice(keys) if keys else None


def _about(
    random: Random, start: Start, kind: str, order: str, fixed: Values
) -> dict[str, str] | None:
    record = start.tables["order"][order]
    match kind:
        case "status" | "cancel_refused" | "return_refused":
            return {"status": record["status"], "day": record["day"]}
        case "total":
            prices = [start.tables["item"][item]["price"] for item in record["items"]]
            return {"sum": " + ".join(map(str, prices)), "total": str(sum(prices))}
        case "cancel":
            return {"reason": fixed.get("reason") or random.choice(REASONS)}
        case "redirect":
            new = fixed.get("address") or address(random)
            return {"address": new} if new != record["address"] else None
        case "rebill":
            pays = start.tables["user"][start.hero]["pays"]
            other = [pay for pay in pays if pay != record["pay"]]
            return {"pay": fixed.get("pay") or random.choice(other)}
        case "lost":
            return {"address": record["address"]}
    return _item(random, start, kind, order, fixed)


def _item(random: Random, start: Start, kind: str, order: str, fixed: Values) -> dict[str, str]:
    """An item of the order by its product's name, and for a swap another option of it."""
    items = start.tables["item"]
    held = {items[key]["product"]: key for key in start.tables["order"][order]["items"]}
    name = fixed.get("item") or random.choice(list(held))
    key = held[name]
    values = {"item": name, "item_id": key}
    if kind == "refund":
        price = items[key]["price"]
        fee, refund = str(RETURN_FEE), str(price - RETURN_FEE)
        return {**values, "price": str(price), "fee": fee, "refund": refund}
    if kind in ("exchange", "swap"):
        others = [i for i in start.tables["product"][name]["items"] if i != key]
        new = next((i for i in others if items[i]["option"] == fixed.get("option")), None)
        new = new or random.choice(others)
        return {**values, "option": items[new]["option"], "new_id": new}
    return values
