"""The pages of the three sites, and the server that shows them on loopback."""

import html
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from progrl.benchmarks.sites.store import CATEGORIES, ME, Store

MOST_BYTES = 100_000
"""Of a form that is sent."""
POLL = 0.1
"""Seconds after which a server that is to stop does so."""


@dataclass(frozen=True, slots=True)
class Event:
    """A form that was sent: where to, with what, and whether the site took it."""

    path: str
    form: Mapping[str, str]
    taken: bool


class Refused(Exception):
    """A form with which the site can do nothing."""


def _e(value: Any) -> str:
    return html.escape(str(value))


def _link(path: str, words: str) -> str:
    return f'<a href="{_e(path)}">{_e(words)}</a>'


def _to(kind: str, row: Mapping[str, Any]) -> str:
    return _link(f"/{kind}/{row['id']}", row["name"] if kind == "product" else row["title"])


def _list(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else "<p>None.</p>"


def _field(label: str, name: str, value: str = "") -> str:
    return f'<label>{_e(label)} <input name="{name}" value="{_e(value)}"></label>'


def _choice(label: str, name: str, options: list[str], chosen: str) -> str:
    made = "".join(
        f"<option{' selected' if option == chosen else ''}>{_e(option)}</option>"
        for option in options
    )
    return f'<label>{_e(label)} <select name="{name}">{made}</select></label>'


def _form(path: str, button: str, *fields: str, method: str = "post") -> str:
    inner = " ".join(fields)
    return f'<form method="{method}" action="{path}">{inner} <button>{_e(button)}</button></form>'


def money(cents: int) -> str:
    """As the shop shows it."""
    return f"{cents // 100}.{cents % 100:02d}"


class Sites:
    """What the sites show, and what they do with a form."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: dict[str, Callable[[str, Mapping[str, str]], tuple[str, str]]] = {
            "": self._home,
            "shop": self._shop,
            "product": self._product,
            "cart": self._cart,
            "forum": self._forum,
            "post": self._post,
            "content": self._content,
            "page": self._page,
        }
        self._forms: dict[str, Callable[[str, Mapping[str, str]], str]] = {
            "product": self._add,
            "cart": self._order,
            "post": self._comment,
            "vote": self._vote,
            "page": self._save,
        }

    def show(self, path: str, asked: Mapping[str, str]) -> str | None:
        """The page at `path`; None where there is none."""
        name, _, key = path.strip("/").partition("/")
        try:
            title, body = self._pages[name](key, asked)
        except (KeyError, IndexError):
            return None
        bar = " ".join(
            _link(*each) for each in (("/shop", "Shop"), ("/cart", "Cart"), ("/forum", "Forum"))
        )
        bar += f" {_link('/content', 'Content')}"
        return (
            f'<!doctype html><html lang="en"><title>{_e(title)}</title><nav>{bar}</nav>'
            f"<main><h1>{_e(title)}</h1>{body}</main></html>"
        )

    def take(self, path: str, form: Mapping[str, str]) -> str:
        """Do what a form says; the path to go to.

        Raises:
            Refused: it says nothing that can be done.
        """
        name, _, key = path.strip("/").partition("/")
        try:
            return self._forms[name](key, form)
        except (KeyError, IndexError, ValueError):
            raise Refused from None

    def _one(self, table: str, key: str) -> dict[str, Any]:
        return self._store.rows(f"select * from {table} where id = ?", key)[0]

    def _home(self, key: str, asked: Mapping[str, str]) -> tuple[str, str]:
        return "Welcome", "<p>A shop, a forum, and the editor of the town's pages.</p>"

    def _shop(self, key: str, asked: Mapping[str, str]) -> tuple[str, str]:
        words, category = asked.get("q", ""), asked.get("category", "All")
        found = self._store.rows(
            "select * from products where instr(name, ?) and ? in ('All', category) order by id",
            words.lower(),
            category,
        )
        choices = ["All", *CATEGORIES]
        fields = (_field("Words", "q", words), _choice("Category", "category", choices, category))
        rows = [f"{_to('product', row)} {money(row['cents'])}" for row in found]
        return "Shop", _form("/shop", "Search", *fields, method="get") + _list(rows)

    def _product(self, key: str, asked: Mapping[str, str]) -> tuple[str, str]:
        row = self._one("products", key)
        about = f"<p>{row['category']}. Price {money(row['cents'])}. {row['stock']} in stock.</p>"
        return row["name"], about + _form(
            f"/product/{key}", "Add to cart", _field("Count", "count", "1")
        )

    def _add(self, key: str, form: Mapping[str, str]) -> str:
        row, count = self._one("products", key), int(form["count"])
        if not 1 <= count <= row["stock"]:
            raise ValueError
        self._store.change("insert into cart values (?, ?)", row["id"], count)
        return "/cart"

    def _cart(self, key: str, asked: Mapping[str, str]) -> tuple[str, str]:
        found = self._store.rows(
            "select name, count from cart join products on id = product order by cart.rowid"
        )
        ordered = self._store.rows(
            "select name, count, address from orders join products on products.id = product "
            "order by orders.id"
        )
        body = _list([_e(f"{row['count']} x {row['name']}") for row in found])
        if found:
            body += _form("/cart", "Order", _field("Address", "address"))
        done = [_e(f"{row['count']} x {row['name']} to {row['address']}") for row in ordered]
        return "Cart", f"{body}<h2>Orders</h2>{_list(done)}"

    def _order(self, key: str, form: Mapping[str, str]) -> str:
        address = " ".join(form["address"].split())
        rows = self._store.rows("select * from cart order by rowid")
        if not address or not rows:
            raise ValueError
        for row in rows:
            values = (row["product"], row["count"], address)
            self._store.change(
                "insert into orders (product, count, address) values (?, ?, ?)", *values
            )
            self._store.change(
                "update products set stock = stock - ? where id = ?", row["count"], row["product"]
            )
        self._store.change("delete from cart")
        return "/cart"

    def _forum(self, key: str, asked: Mapping[str, str]) -> tuple[str, str]:
        rows = self._store.rows("select * from posts order by board, id")
        boards: dict[str, list[str]] = {}
        for row in rows:
            shown = f"{_to('post', row)} by {_e(row['author'])}"
            boards.setdefault(row["board"], []).append(shown)
        return "Forum", "".join(f"<h2>{name}</h2>{_list(each)}" for name, each in boards.items())

    def _post(self, key: str, asked: Mapping[str, str]) -> tuple[str, str]:
        row = self._one("posts", key)
        said = self._store.rows("select * from comments where post = ? order by id", key)
        about = f"<p>{_e(row['author'])}: {_e(row['body'])}</p><p>{row['votes']} votes</p>"
        about += _form(f"/vote/{key}", "Vote for it")
        comments = [_e(f"{each['author']}: {each['body']}") for each in said]
        about += f"<h2>Comments</h2>{_list(comments)}"
        return row["title"], about + _form(f"/post/{key}", "Send", _field("Comment", "body"))

    def _comment(self, key: str, form: Mapping[str, str]) -> str:
        row, body = self._one("posts", key), " ".join(form["body"].split())
        if not body:
            raise ValueError
        self._store.change(
            "insert into comments (post, author, body) values (?, ?, ?)", row["id"], ME, body
        )
        return f"/post/{key}"

    def _vote(self, key: str, form: Mapping[str, str]) -> str:
        row = self._one("posts", key)
        self._store.change("update posts set votes = votes + 1 where id = ?", row["id"])
        return f"/post/{key}"

    def _content(self, key: str, asked: Mapping[str, str]) -> tuple[str, str]:
        rows = self._store.rows("select * from pages order by id")
        shown = [f"{_to('page', row)} by {_e(row['author'])}, {row['state']}" for row in rows]
        return "Content", _list(shown)

    def _page(self, key: str, asked: Mapping[str, str]) -> tuple[str, str]:
        row = self._one("pages", key)
        fields = (
            _field("Title", "title", row["title"]),
            _field("Text", "body", row["body"]),
            _choice("State", "state", ["draft", "published"], row["state"]),
        )
        return f"Edit {row['title']}", _form(f"/page/{key}", "Save", *fields)

    def _save(self, key: str, form: Mapping[str, str]) -> str:
        row, title = self._one("pages", key), " ".join(form["title"].split())
        if not title or form["state"] not in {"draft", "published"}:
            raise ValueError
        values = (title, form["body"], form["state"], row["id"])
        self._store.change("update pages set title = ?, body = ?, state = ? where id = ?", *values)
        return "/content"


class Served:
    """The sites of one episode, with a server of their own on a free port of loopback."""

    def __init__(self, seed: int) -> None:
        self.store = Store(seed)
        self.events: list[Event] = []
        server = _Server(("127.0.0.1", 0), _handler(Sites(self.store), self.events))
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        self._open = [True]
        self.thread = threading.Thread(target=_serve, args=(server, self._open), daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Stop serving, soon. It takes no lock, so it may be called while garbage is collected."""
        self._open.clear()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    timeout = POLL

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no news."""


def _serve(server: _Server, opened: list[bool]) -> None:
    with server:
        while opened:
            server.handle_request()


def _handler(sites: Sites, events: list[Event]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            page = sites.show(asked.path, dict(parse_qsl(asked.query)))
            self._answer(404 if page is None else 200, page or "<h1>No such page</h1>")

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            size = int(length) if length.isdecimal() else 0
            if size > MOST_BYTES:
                self._answer(413, "<h1>Too much</h1>")
                return
            sent = self.rfile.read(size).decode(errors="replace")
            form = dict(parse_qsl(sent, keep_blank_values=True))
            try:
                after = sites.take(self.path, form)
            except Refused:
                events.append(Event(self.path, form, taken=False))
                self._answer(400, "<h1>That cannot be done</h1><p>Go back and mend it.</p>")
                return
            events.append(Event(self.path, form, taken=True))
            self.send_response(303)
            self.send_header("Location", after)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _answer(self, status: int, page: str) -> None:
            body = page.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
