"""WebArena: its 812 tasks and graders, as the package `webarena-verified` has them, on live sites.

The sites are other people's servers: the variables `WA_SHOPPING` and so on name their addresses.
The pages run in our Chromium, whose log of requests the package's graders read beside the answer.
The package has answers, and requests that must be in the log, but no trajectories: the gold here is
`References`, which grades its answers where an answer is all that a task asks for.
"""

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from progrl.benchmarks.base import Game, GoldExpert, Silent, bounded, task, tool
from progrl.benchmarks.browser import ACTIONS, PageGame, Tab
from progrl.benchmarks.isolated import enable
from progrl.dialogue.messages import ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.environments.contracts import StepResult
from progrl.errors import ConfigurationError, EnvironmentFault, MalformedAction

NAME = "webarena"
SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia")
VARIABLES = {site: f"WA_{site.upper()}" for site in SITES}
LOGIN = "WA_STATE"
"""Variable that may name a file of Playwright's storage state: the cookies of a login."""
TURNS = 30
"""Of the agent, as WebArena's own agents have them."""
_TEXT = {"type": "string"}
ANSWER = tool(
    "answer",
    "End the task. The data is what was asked for, an item each; none where nothing was.",
    task_type={"enum": ["RETRIEVE", "MUTATE", "NAVIGATE"]},
    status={
        "enum": [
            "SUCCESS",
            "ACTION_NOT_ALLOWED_ERROR",
            "PERMISSION_DENIED_ERROR",
            "NOT_FOUND_ERROR",
            "DATA_VALIDATION_ERROR",
            "UNKNOWN_ERROR",
        ]
    },
    retrieved_data={"type": "array", "items": {"type": ["string", "number", "boolean", "object"]}},
)
TOOLS: tuple[ToolSpec, ...] = (
    tool("look", "See the page."),
    *ACTIONS,
    tool("goto", "Open an address of the task's sites.", address=_TEXT),
    ANSWER,
)
NOWHERE = {site: f"http://{site.replace('_', '-')}.invalid" for site in SITES}
"""Addresses for grading that opens no page."""


def addresses() -> dict[str, str]:
    """The sites that the environment names, in the order of `SITES`.

    Raises:
        ConfigurationError: it names none, or something that is no address.
    """
    found = {s: os.environ[v].rstrip("/") for s, v in VARIABLES.items() if os.environ.get(v)}
    if not found:
        raise ConfigurationError(
            "WebArena's sites must run elsewhere: name their addresses by "
            f"{', '.join(VARIABLES.values())} (some of them will do for the tasks on these)."
        )
    for site, address in found.items():
        if not re.match(r"https?://[^/]+", address):
            raise ConfigurationError(f"{VARIABLES[site]}={address}: not an address, as in http://…")
    return found


@cache
def _verified(places: tuple[tuple[str, str], ...]) -> Any:
    """The package's tasks and graders, for sites at these places."""
    enable(NAME)
    # Failed gradings are results here, not news.
    logging.getLogger("WebArena-Verified").setLevel(logging.CRITICAL)
    logging.getLogger("webarena_verified").setLevel(logging.CRITICAL)
    config: Any = import_module("webarena_verified.types.config").WebArenaVerifiedConfig
    made: Any = import_module("webarena_verified.api").WebArenaVerified
    return made(config=config(environments={site: {"urls": [url]} for site, url in places}))


def graded(
    places: Mapping[str, str], number: int, answer: Any, log: Sequence[Mapping[str, Any]]
) -> float:
    """The package's score of an answer and a log of requests (entries of a HAR file), 0 or 1.

    Raises:
        EnvironmentFault: the package could not grade it.
    """
    verified = _verified(tuple(places.items()))
    with bounded("WebArena's graders"):
        found = verified.evaluate_task(
            task_id=number, agent_response=answer, network_trace=[dict(entry) for entry in log]
        )
    if found.status.value == "error":
        raise EnvironmentFault(f"WebArena's graders failed on task {number}: {found.error_msg}")
    return float(found.score)


def reference(entry: Any) -> dict[str, Any]:
    """The arguments of `answer` that the package expects, of alternatives the first."""
    expected = entry.expected_agent_response.model_dump(mode="json")
    items = expected["retrieved_data"] or ()
    return {
        "task_type": expected["task_type"],
        "status": expected["status"],
        "retrieved_data": [item[0] if isinstance(item, list) else item for item in items],
    }


class WebArenaEnvironment(PageGame):
    """One episode on live sites. What it changes there stays: resetting them is up to who runs
    them."""

    tools = TOOLS

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Open the first start page in a fresh context, which keeps a log."""
        self._number, starts = task.setup["number"], task.setup["starts"]
        self._solved = self._ended = False
        self._folder = TemporaryDirectory(prefix="progrl-webarena-")
        self._log = Path(self._folder.name) / "log.har"
        own = self._own = {_origin(self._places[site]) for site in task.setup["sites"]}
        state = os.environ.get(LOGIN)
        if state and not Path(state).is_file():
            raise ConfigurationError(f"{LOGIN}={state}: there is no such file.")
        self._tab = Tab(
            lambda url: _origin(url) in own,
            record_har_path=str(self._log),
            storage_state=state or None,
        )
        address = rendered(starts[0], self._places)
        self._tab.do(f"to open {address}", lambda page: page.goto(address))
        return TOOLS

    def _acted(self, call: ToolCall) -> StepResult:
        if call.name != "goto":
            return super()._acted(call)
        self._goto(call.arguments["address"])
        return StepResult(self._tab.snapshot())

    def _goto(self, address: str) -> None:
        if _origin(address) not in self._own:
            raise MalformedAction("the address is on none of the task's sites")

        def gone(page: Any) -> str:
            try:
                page.goto(address)
            except Exception as error:
                if page.is_closed():
                    raise
                return (str(error).strip().splitlines() or [repr(error)])[0][:200]
            return ""

        failed = self._tab.do("to go to an address", gone)
        if failed:
            raise MalformedAction(failed)

    def _judged(self, call: ToolCall) -> StepResult:
        """Closing the context writes the log, which the graders then read."""
        self._tab.do("for its log", lambda page: page.context.close())
        log = json.loads(self._log.read_text(encoding="utf-8"))["log"]["entries"]
        self._folder.cleanup()
        return self._end(graded(self._places, self._number, dict(call.arguments), log) == 1)


class ReferenceEnvironment(PageGame):
    """An episode without any page, in which an answer is graded and nothing else can be done."""

    tools = (ANSWER,)

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Nothing is opened."""
        self._number, self._site = task.setup["number"], task.setup["sites"][0]
        self._solved = self._ended = False
        return self.tools

    def _judged(self, call: ToolCall) -> StepResult:
        request = {"url": NOWHERE[self._site], "method": "GET", "headers": []}
        response = {"status": 200, "headers": [], "redirectURL": "", "content": {}}
        log = [{"request": request, "response": response}]
        return self._end(graded(NOWHERE, self._number, dict(call.arguments), log) == 1)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def rendered(template: str, places: Mapping[str, str]) -> str:
    """An address of the package's, with a site's own in the place of its name."""
    return re.sub(r"__([A-Z_]+?)__", lambda found: places[found[1].lower()], template)


class WebArena(Silent):
    """The tasks whose sites all have an address in the environment."""

    name = NAME
    description = "Do tasks in a shop, its administration, a forum, GitLab, a map, Wikipedia."
    policy = (
        "Do what is asked in the web pages, and nothing else. You see the accessibility tree of a "
        "page; an element is named by its ref, which changes from page to page. End with answer: "
        "RETRIEVE where something was asked, MUTATE where something was to be changed, NAVIGATE "
        "where a page was to be opened; SUCCESS, or why it cannot be done.\n"
    )
    tools = TOOLS

    def __init__(self) -> None:
        self._places = self._named()
        verified = _verified(tuple(self._places.items()))
        kinds: dict[str, list[Any]] = {}
        for entry in verified.get_tasks():
            if self._wanted(entry):
                kinds.setdefault("_".join(site.value for site in entry.sites), []).append(entry)
        rows = zip_longest(*kinds.values())
        self._entries = [entry for entry in chain.from_iterable(rows) if entry is not None]

    def _named(self) -> dict[str, str]:
        return addresses()

    def _wanted(self, entry: Any) -> bool:
        return all(site.value in self._places for site in entry.sites)

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The sites in turn; the same for every split and seed."""
        return (self._task(entry) for entry in self._entries)

    def _task(self, entry: Any) -> Task:
        sites = [site.value for site in entry.sites]
        starts = list(entry.start_urls)
        where = " ".join(rendered(start, self._places) for start in starts)
        gold = [{"call": "answer", "arguments": reference(entry)}] if len(entry.eval) == 1 else []
        return task(
            self.name,
            "_".join(sites),
            min(5, len(entry.eval) + len(sites) - 1),
            f"{entry.intent}\nThe pages: {where}",
            {"gold": gold},
            {"number": entry.task_id, "sites": sites, "starts": starts},
            len(gold) + 1,
        )

    def turns(self, task: Task) -> int:
        """As many as WebArena's own agents have."""
        return TURNS

    def environment(self) -> Game:
        """A fresh environment."""
        return WebArenaEnvironment(self._places)

    def expert(self) -> GoldExpert:
        """Gives the reference answer where that is all; it does nothing in pages."""
        return GoldExpert()


class References(WebArena):
    """The tasks that ask for an answer alone, without their sites: a test of the grading."""

    tools = (ANSWER,)

    def _named(self) -> dict[str, str]:
        return dict(NOWHERE)

    def _wanted(self, entry: Any) -> bool:
        return len(entry.eval) == 1

    def environment(self) -> Game:
        """A fresh environment."""
        return ReferenceEnvironment()
