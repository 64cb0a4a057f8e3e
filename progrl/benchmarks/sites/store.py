"""What the sites know: a database in memory, filled from a seed."""

import sqlite3
import threading
from collections.abc import Sequence
from typing import Any

from progrl.seeds import Seed

SCHEMA = """
create table products (id integer primary key, name text, category text, cents integer,
    stock integer);
create table cart (product integer, count integer);
create table orders (id integer primary key, product integer, count integer, address text);
create table posts (id integer primary key, board text, author text, title text, body text,
    votes integer);
create table comments (id integer primary key, post integer, author text, body text);
create table pages (id integer primary key, title text, body text, author text, state text);
"""
TABLES = ("products", "cart", "orders", "posts", "comments", "pages")
CATEGORIES = {
    "Kitchen": ("kettle", "pan", "ladle", "grater", "teapot"),
    "Garden": ("spade", "rake", "hose", "trowel", "lantern"),
    "Office": ("stapler", "folder", "lamp", "ruler", "clock"),
}
COLOURS = ("amber", "copper", "green", "ivory", "violet", "silver")
PEOPLE = ("adele", "bruno", "clara", "dario", "elena", "felix")
BOARDS = ("Cycling", "Baking", "Music")
SUBJECTS = ("chains", "bread", "strings", "lights", "ovens", "records", "tyres", "cakes", "drums")
OPENINGS = ("A question on", "New to", "My notes on", "Help with")
THOUGHTS = ("I agree.", "Not so sure.", "Thanks for this.", "Has anybody tried it?", "Well said.")
PLACES = ("north", "river", "harbour", "castle", "market", "forest")
KINDS = ("Opening hours of the", "History of the", "Guide to the", "News from the")
ME = "you"
"""The name that the agent is known by."""


class Store:
    """The database of one episode; safe to use from several threads."""

    def __init__(self, seed: int) -> None:
        self._lock = threading.Lock()
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        self._base.row_factory = sqlite3.Row
        self._base.executescript(SCHEMA)
        self._fill(seed)

    def rows(self, question: str, *values: Any) -> list[dict[str, Any]]:
        """The rows that a query finds."""
        with self._lock:
            return [dict(row) for row in self._base.execute(question, values)]

    def change(self, command: str, *values: Any) -> None:
        """Change something."""
        with self._lock, self._base:
            self._base.execute(command, values)

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """All rows of all tables, in the order of their content."""
        return {
            table: sorted(
                self.rows(f"select * from {table}"), key=lambda row: repr(list(row.values()))
            )
            for table in TABLES
        }

    def close(self) -> None:
        """Forget it."""
        with self._lock:
            self._base.close()

    def _fill(self, seed: int) -> None:
        random = Seed("benchmark=local_sites").child("world", seed).random()
        number = 0
        for category, things in CATEGORIES.items():
            cents = random.sample(range(300, 9000, 5), len(things) * 2)
            for thing in things:
                for colour in random.sample(COLOURS, 2):
                    number += 1
                    name, stock = f"{colour} {thing}", random.randint(3, 9)
                    self._insert("products", (number, name, category, cents.pop(), stock))
        titles = [f"{opening} {subject}" for opening in OPENINGS for subject in SUBJECTS]
        for post, title in enumerate(random.sample(titles, 12), 1):
            board, author = BOARDS[post % len(BOARDS)], random.choice(PEOPLE)
            row = (post, board, author, title, random.choice(THOUGHTS), random.randint(0, 30))
            self._insert("posts", row)
            for _ in range(random.randint(1, 6)):
                said = (post, random.choice(PEOPLE), random.choice(THOUGHTS))
                self.change("insert into comments (post, author, body) values (?, ?, ?)", *said)
        names = [f"{kind} {place}" for kind in KINDS for place in PLACES]
        for page, title in enumerate(random.sample(names, 12), 1):
            state = "draft" if page % 2 else "published"
            body = f"{title}, in short. {random.choice(THOUGHTS)}"
            self._insert("pages", (page, title, body, random.choice(PEOPLE[:3]), state))

    def _insert(self, table: str, row: Sequence[Any]) -> None:
        self.change(f"insert into {table} values ({', '.join('?' * len(row))})", *row)
