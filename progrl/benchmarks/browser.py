"""A real Chromium, driven by Playwright, for all benchmarks that happen in pages.

A thread of its own speaks to the browser, since Playwright's plain interface cannot be used in an
event loop. Every episode has a context of its own, so no cookie passes from one to another.
Playwright ends the browser when this process ends, however that ends.
"""

import atexit
import contextlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from progrl.benchmarks.base import Game, check_call, standing, tool
from progrl.benchmarks.contracts import program
from progrl.dialogue.messages import ToolCall, ToolSpec
from progrl.environments.contracts import StepResult
from progrl.errors import ConfigurationError, EnvironmentFault, MalformedAction

T = TypeVar("T")
SECONDS = 60.0
"""Wall time that one thing asked of the browser may take."""
ACT_SECONDS = 15.0
"""Wall time within which an element must take a click or a text; long, for busy machines."""
ARGUMENTS = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
"""Chromium's sandbox does not work for root, as in a container."""
_REF = {"type": "string", "description": "an element's ref in the last snapshot, as in: e12"}
_TEXT = {"type": "string"}
ACTIONS: tuple[ToolSpec, ...] = (
    tool("click", "Click an element.", ref=_REF),
    tool("fill", "Replace the text of a field.", ref=_REF, text=_TEXT),
    tool("select_option", "Choose an option of a list.", ref=_REF, option=_TEXT),
    tool("press", "Press a key in an element, as in: Enter", ref=_REF, key=_TEXT),
    tool("hover", "Move the mouse over an element.", ref=_REF),
    tool("go_back", "Go to the page before."),
)
"""What can be done in a page; the names follow BrowserGym's."""


_UNCOVERED = """element => {
    const { left, top, width, height } = element.getBoundingClientRect();
    const root = element.getRootNode();
    const seen = ([x, y]) => element.contains(root.elementFromPoint(left + x, top + y));
    const parts = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9, 0.04, 0.96];
    const points = parts.flatMap(y => parts.map(x => [x * width, y * height]));
    const at = seen(points[0]) ? null : points.find(seen);
    return at ? { x: at[0] - element.clientLeft, y: at[1] - element.clientTop } : null;
}"""
"""Where an element can be seen whose middle lies under another one; null where its middle can be
seen, or nothing of it."""
_ELEMENT = re.compile(
    r"^\s*- '?(\w+)(?: \"(.*?)\")?(?: \[[^\]]*\])*? \[ref=((?:f\d+)?e\d+)\](?: \[[^\]]*\])*"
    r"(?:'?: (.+))?",
    re.M,
)


class Element(NamedTuple):
    """A line of a snapshot: role, name ("" for none), ref, and the text that it holds itself."""

    role: str
    name: str
    ref: str
    text: str


class Seen:
    """A snapshot, line by line, for the expert."""

    def __init__(self, snapshot: str) -> None:
        self.snapshot = snapshot
        self.elements = [
            Element(role, name, ref, text.strip('"'))
            for role, name, ref, text in _ELEMENT.findall(snapshot)
        ]

    def refs(self, role: str, name: str | None = None) -> list[str]:
        """Those of a role, and of a name."""
        return [e.ref for e in self.elements if e.role == role and name in (None, e.name)]

    def ref(self, role: str, name: str | None = None) -> str:
        """The first.

        Raises:
            EnvironmentFault: there is none.
        """
        found = self.refs(role, name)
        if not found:
            raise EnvironmentFault(f"the expert sees no {role} {name or ''}")
        return found[0]


class Chromium:
    """The browser and the thread that speaks to it."""

    def __init__(self) -> None:
        path = program("chromium")
        if path is None:
            raise ConfigurationError("No Chromium is on PATH: install it (`progrl doctor`).")
        self._owner = os.getpid()
        self._thread = ThreadPoolExecutor(1, "chromium")
        self._driver: Any = None
        self._browser: Any = None
        self._left: deque[Any] = deque()
        atexit.register(self.close)
        self.asked("to start", lambda: self._start(path))

    def _start(self, path: str) -> None:
        api: Any = import_module("playwright.sync_api")
        self._errors: type[Exception] = api.Error
        self._driver = api.sync_playwright().start()
        self._browser = self._driver.chromium.launch(executable_path=path, args=ARGUMENTS)

    @property
    def ours(self) -> bool:
        """Whether it runs, and this very process has started it."""
        return self._owner == os.getpid() and self._browser is not None

    def asked(self, what: str, do: Callable[[], T]) -> T:
        """The result of `do`, which runs beside the browser.

        Raises:
            EnvironmentFault: it failed, or took too long.
        """

        def done() -> T:
            while self._left:
                with contextlib.suppress(self._errors):
                    self._left.popleft().context.close()
            return do()

        future: Future[T] = self._thread.submit(done)
        try:
            return future.result(SECONDS)
        except Late:
            self._browser = None
            raise EnvironmentFault(f"Chromium, asked {what}, took over {SECONDS:g} s") from None
        except Exception as error:
            if self._browser is not None and not self._browser.is_connected():
                self._browser = None
            first = (str(error).strip().splitlines() or [repr(error)])[0]
            raise EnvironmentFault(f"Chromium, asked {what}, failed: {first}") from None

    def new_page(self, allowed: Callable[[str], bool], **options: Any) -> Any:
        """A page in a context of its own, which asks only the addresses that are `allowed`.

        Args:
            options: more of Playwright's, for the context.
        """

        def made() -> Any:
            size = {"width": 1000, "height": 700}
            context = self._browser.new_context(
                viewport=size, locale="en-GB", timezone_id="UTC", **options
            )
            context.set_default_timeout(ACT_SECONDS * 1000)
            context.set_default_navigation_timeout(SECONDS * 500)
            context.route(
                lambda url: not allowed(url), lambda route: route.abort("blockedbyclient")
            )
            return context.new_page()

        return self.asked("for a page", made)

    def closes(self, page: Any) -> None:
        """Close a page and its context before the next thing that is asked.

        It takes no lock, so it may be called while garbage is collected.
        """
        self._left.append(page)

    def close(self) -> None:
        """End the browser."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():
            return

        def end() -> None:
            with contextlib.suppress(Exception):
                if self._browser is not None:
                    self._browser.close()
            if self._driver is not None:
                self._driver.stop()

        with contextlib.suppress(Exception):
            self._thread.submit(end).result(10)
        self._browser = None
        self._thread.shutdown(wait=False)


chromium = standing(Chromium)


class Tab:
    """An episode's page. It is closed with `close`, or when nobody has it any more."""

    def __init__(self, allowed: Callable[[str], bool], **options: Any) -> None:
        self._browser = chromium()
        self.page = self._browser.new_page(allowed, **options)

    def do(self, what: str, act: Callable[[Any], T]) -> T:
        """The result of `act`, given the page.

        Raises:
            EnvironmentFault: the browser failed.
        """
        return self._browser.asked(what, lambda: act(self.page))

    def snapshot(self) -> str:
        """The page in words: roles, names, texts and refs of what is accessible."""
        return self.do("for a snapshot", lambda page: str(page.aria_snapshot(mode="ai")).strip())

    def act(self, call: ToolCall) -> None:
        """Do one of `ACTIONS`.

        Raises:
            MalformedAction: it is none, or cannot be done in the page as it is.
            EnvironmentFault: the browser failed.
        """
        check_call(call, ACTIONS)
        failed = self.do(f"to {call.name}", lambda page: self._failed(page, call))
        if failed:
            raise MalformedAction(failed)

    def _failed(self, page: Any, call: ToolCall) -> str:
        """Do it; what went wrong, "" where nothing did."""
        given = call.arguments
        ref = str(given.get("ref", ""))
        if "ref" in given and not re.fullmatch(r"(f\d+)?e\d+", ref):
            return f"no element {ref[:20]}"
        element: Any = page.locator(f"aria-ref={ref}") if ref else None
        try:
            if ref and not element.count():
                return f"no element {ref}"
            _do(page, element, call)
            page.wait_for_load_state()
        except Exception as error:
            if page.is_closed():
                raise
            return (str(error).strip().splitlines() or [repr(error)])[0][:200]
        return ""

    def close(self) -> None:
        """Close it; more than once does no harm."""
        self._browser.closes(self.page)

    def __del__(self) -> None:
        if hasattr(self, "page"):
            self.close()


def _do(page: Any, element: Any, call: ToolCall) -> None:
    """One of `ACTIONS`, by Playwright."""
    match call.name:
        case "click":
            element.scroll_into_view_if_needed()
            element.click(position=element.evaluate(_UNCOVERED))
        case "fill":
            element.fill(call.arguments["text"])
        case "select_option":
            element.select_option(label=call.arguments["option"])
        case "press":
            element.press(call.arguments["key"])
        case "hover":
            element.hover()
        case "go_back":
            page.go_back()


@contextlib.contextmanager
def tab(allowed: Callable[[str], bool]) -> Iterator[Tab]:
    """A tab that is closed at the block's end."""
    made = Tab(allowed)
    try:
        yield made
    finally:
        made.close()


class PageGame(Game):
    """An episode in a page. Subclasses set `tools` and `_tab`, and judge an `answer`."""

    tools: tuple[ToolSpec, ...]
    _tab: Tab

    def _call(self, call: ToolCall) -> StepResult:
        try:
            check_call(call, self.tools)
            return self._judged(call) if call.name == "answer" else self._acted(call)
        except MalformedAction as error:
            return StepResult(f"error: {error}", failed=True)

    def _acted(self, call: ToolCall) -> StepResult:
        """Look, or do one of `ACTIONS`; what is then seen."""
        if call.name != "look":
            self._tab.act(call)
        return StepResult(self._tab.snapshot())

    def _judged(self, call: ToolCall) -> StepResult:
        """End the episode by the agent's answer, where there is such a tool."""
        raise MalformedAction("nothing is to be answered here")

    def _end(self, solved: bool) -> StepResult:
        """What an agent reads at the end."""
        self._ended, self._solved = True, solved
        return StepResult("the task has ended", 0.0, ("solved",) * solved, float(solved), True)
