"""Tasks on the sites: what is asked, the right answer, the forms that must be sent, what changes.

A task's goal holds `answer` (typed: a number, words, or a set of words; None where any will do),
`events` (forms that the sites must have taken, in order, and no other ones), `changes` (SQL that
makes of the first database the one that must be left) and `gold` (what the expert does).
"""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from progrl.benchmarks.sites.server import Event, money
from progrl.benchmarks.sites.store import CATEGORIES, ME, Store

STREETS = ("Mill Lane", "High Street", "Station Road", "Orchard Way")
REPLIES = ("Try a drop of oil.", "I had the same last week.", "Ask at the shop in town.")
Step = list[str]
Made = tuple[str, dict[str, Any]]


def _goal(
    gold: Sequence[Step],
    answer: Any = None,
    events: Sequence[tuple[str, dict[str, str]]] = (),
    changes: Sequence[tuple[str, list[Any]]] = (),
) -> dict[str, Any]:
    said = ", ".join(answer) if isinstance(answer, list) else str(answer or "done")
    return {
        "answer": answer,
        "events": [{"path": path, "form": form} for path, form in events],
        "changes": [{"command": command, "values": values} for command, values in changes],
        "gold": [*gold, ["answer", said]],
    }


def _open(site: str, name: str) -> list[Step]:
    return [["click", "link", site], ["click", "link", name]]


def _price(store: Store, random: Random) -> Made:
    row = random.choice(store.rows("select * from products order by id"))
    query = f"In the shop, what does the {row['name']} cost? Answer with the price alone."
    return query, _goal(_open("Shop", row["name"]), float(money(row["cents"])))


def _cheapest(store: Store, random: Random) -> Made:
    category = random.choice(list(CATEGORIES))
    found = store.rows("select * from products where category = ? order by cents", category)
    query = (
        f"In the shop, which product of the category {category} is the cheapest? Its name alone."
    )
    steps = [
        ["click", "link", "Shop"],
        ["select_option", "combobox", "Category", category],
        ["click", "button", "Search"],
    ]
    return query, _goal(steps, found[0]["name"])


def _order(store: Store, random: Random) -> Made:
    row = random.choice(store.rows("select * from products order by id"))
    count, address = random.randint(1, 3), f"{random.randint(1, 99)} {random.choice(STREETS)}"
    query = f"In the shop, order {count} x {row['name']} to the address {address}."
    path = f"/product/{row['id']}"
    steps = [
        *_open("Shop", row["name"]),
        ["fill", "textbox", "Count", str(count)],
        ["click", "button", "Add to cart"],
        ["fill", "textbox", "Address", address],
        ["click", "button", "Order"],
    ]
    insert = "insert into orders (product, count, address) values (?, ?, ?)"
    changes: list[tuple[str, list[Any]]] = [
        (insert, [row["id"], count, address]),
        ("update products set stock = stock - ? where id = ?", [count, row["id"]]),
    ]
    events = [(path, {"count": str(count)}), ("/cart", {"address": address})]
    return query, _goal(steps, None, events, changes)


def _comments(store: Store, random: Random) -> Made:
    row = random.choice(store.rows("select * from posts order by id"))
    said = store.rows("select * from comments where post = ?", row["id"])
    query = f"In the forum, how many comments has the post '{row['title']}'? Answer with a number."
    return query, _goal(_open("Forum", row["title"]), float(len(said)))


def _reply(store: Store, random: Random) -> Made:
    row, body = random.choice(store.rows("select * from posts order by id")), random.choice(REPLIES)
    query = f"In the forum, comment on the post '{row['title']}' with exactly: {body}"
    steps = [
        *_open("Forum", row["title"]),
        ["fill", "textbox", "Comment", body],
        ["click", "button", "Send"],
    ]
    insert = "insert into comments (post, author, body) values (?, ?, ?)"
    events = [(f"/post/{row['id']}", {"body": body})]
    return query, _goal(steps, None, events, [(insert, [row["id"], ME, body])])


def _vote(store: Store, random: Random) -> Made:
    row = random.choice(store.rows("select * from posts order by id"))
    query = f"In the forum, vote once for the post '{row['title']}'."
    steps = [*_open("Forum", row["title"]), ["click", "button", "Vote for it"]]
    change = ("update posts set votes = votes + 1 where id = ?", [row["id"]])
    events: list[tuple[str, dict[str, str]]] = [(f"/vote/{row['id']}", {})]
    return query, _goal(steps, None, events, [change])


def _drafts(store: Store, random: Random) -> Made:
    rows = store.rows("select * from pages where state = 'draft' order by id")
    author = random.choice(sorted({row["author"] for row in rows}))
    titles = [row["title"] for row in rows if row["author"] == author]
    query = f"In the content editor, which pages of {author} are drafts? All titles, with commas."
    return query, _goal([["click", "link", "Content"]], titles)


def _publish(store: Store, random: Random) -> Made:
    row = random.choice(store.rows("select * from pages where state = 'draft' order by id"))
    query = f"In the content editor, publish the page '{row['title']}'."
    steps = [
        *_open("Content", row["title"]),
        ["select_option", "combobox", "State", "published"],
        ["click", "button", "Save"],
    ]
    form = {"title": row["title"], "body": row["body"], "state": "published"}
    change = ("update pages set state = 'published' where id = ?", [row["id"]])
    return query, _goal(steps, None, [(f"/page/{row['id']}", form)], [change])


def _rename(store: Store, random: Random) -> Made:
    row = random.choice(store.rows("select * from pages order by id"))
    title = f"All about the {row['title'].rpartition(' ')[2]}"
    query = f"In the content editor, change the title of '{row['title']}' to '{title}'."
    steps = [
        *_open("Content", row["title"]),
        ["fill", "textbox", "Title", title],
        ["click", "button", "Save"],
    ]
    form = {"title": title, "body": row["body"], "state": row["state"]}
    change = ("update pages set title = ? where id = ?", [title, row["id"]])
    return query, _goal(steps, None, [(f"/page/{row['id']}", form)], [change])


FAMILIES: dict[str, tuple[int, Callable[[Store, Random], Made]]] = {
    "shop_price": (1, _price),
    "forum_comments": (1, _comments),
    "content_drafts": (2, _drafts),
    "shop_cheapest": (2, _cheapest),
    "forum_vote": (3, _vote),
    "forum_reply": (3, _reply),
    "content_publish": (4, _publish),
    "content_rename": (4, _rename),
    "shop_order": (5, _order),
}
"""How a task of a family is made, with its complexity."""


def answers(said: str, expected: Any) -> bool:
    """Whether an answer is right: the same number, words or set of words; None takes any."""
    if expected is None:
        return True
    if isinstance(expected, float):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*", said)
        return found is not None and float(found[1]) == expected
    if isinstance(expected, list):
        return sorted(map(_plain, said.split(","))) == sorted(map(_plain, expected))
    return _plain(said) == _plain(str(expected))


def _plain(words: str) -> str:
    return " ".join(words.lower().split()).rstrip(".")


def sent(events: Sequence[Event], expected: Sequence[dict[str, Any]]) -> bool:
    """Whether the forms that the sites took are those expected; refused ones do not count."""
    taken = [{"path": event.path, "form": dict(event.form)} for event in events if event.taken]
    return taken == list(expected)


def left(store: Store, seed: int, changes: Sequence[dict[str, Any]]) -> bool:
    """Whether the database is the first one with the changes, and nothing else."""
    wanted = Store(seed)
    try:
        for change in changes:
            wanted.change(change["command"], *change["values"])
        return store.everything() == wanted.everything()
    finally:
        wanted.close()
