"""MiniWoB++: small tasks in real web pages (package `miniwob`), seen as an accessibility tree.

The pages run in Chromium; the page's own seed makes the task, its own check the reward. Only the
pages are used: the package's way to drive them needs Selenium. The expert reads what agents read.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from progrl.benchmarks.base import Silent, numbers, task
from progrl.benchmarks.browser import ACTIONS, PageGame, Tab, tab
from progrl.benchmarks.miniwob_solvers import PAGES, calls, complexity, next_call
from progrl.dialogue.messages import Action, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.environments.contracts import State, StepResult

SEEDS = 20
"""The pages' seeds of a split begin here."""
TOOLS: tuple[ToolSpec, ...] = tuple(each for each in ACTIONS if each.name != "go_back")
_BEGIN = """seed => {
    document.getElementById('reward-display').style.display = 'none';
    core.EPISODE_MAX_TIME = 2000000000;
    Math.seedrandom(String(seed));
    core.startEpisodeReal();
    return document.getElementById('query').innerText;
}"""
"""The pages would end an episode after 10 s; nothing here depends on time."""


def _page(name: str) -> Path:
    spec = find_spec("miniwob")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) / "html" / "miniwob" / f"{name}.html"


def _local(url: str) -> bool:
    return url.startswith("file:")


class MiniWobEnvironment(PageGame):
    """One episode in a page."""

    tools = TOOLS

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Open the page and begin its episode."""
        self._tab = Tab(_local)
        self._solved = self._ended = False
        begin(self._tab, task.setup["page"], task.setup["seed"])
        self._tab.snapshot()  # gives the elements the refs that the task's opening has
        return TOOLS

    def _acted(self, call: ToolCall) -> StepResult:
        self._tab.act(call)
        ended, reward = self._tab.do(
            "for the reward", lambda page: page.evaluate("[WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL]")
        )
        if not ended:
            return StepResult(self._tab.snapshot())
        self._tab.close()
        return self._end(reward == 1)


def begin(opened: Tab, name: str, seed: int) -> str:
    """Begin an episode of a page; the instruction."""
    address = _page(name).as_uri()

    def started(page: Any) -> str:
        page.goto(address)
        return " ".join(str(page.evaluate(_BEGIN, seed)).split())

    return opened.do(f"to begin {name}", started)


class MiniWobExpert:
    """Makes a plan of the opening words and follows it, or looks again after every call."""

    def next_action(self, state: State) -> Action:
        """The next call, closing after the last."""
        made = [message.call for message in state.history if message.call is not None]
        last = state.history[-1].content
        call = next_call(state.task.family, state.task.query, last, made)
        return Say("done", closing=True) if call is None else call


class MiniWob(Silent):
    """The pages in turn, 20 seeds each for `test`; without end for training."""

    name = "miniwob"
    description = "Do a small task in a web page."
    policy = (
        "Do what is asked in the web page. You see its accessibility tree; an element is named by "
        "its ref, which may change from one look to the next.\n"
    )
    tools = TOOLS

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The pages in turn, with one seed after the other."""
        for number in numbers(split, seed, SEEDS):
            for name in PAGES:
                yield self._task(name, number)

    def _task(self, name: str, number: int) -> Task:
        with tab(_local) as opened:
            query = f"{begin(opened, name, number)}\n{opened.snapshot()}"
        setup = {"page": name, "seed": number}
        return task(self.name, name, complexity(name), query, {}, setup, calls(name, query))

    def turns(self, task: Task) -> int:
        """Twice what the expert needs, and 10 to look around."""
        return 2 * task.expert_turns + 10

    def environment(self) -> MiniWobEnvironment:
        """A fresh environment."""
        return MiniWobEnvironment()

    def expert(self) -> MiniWobExpert:
        """Solves the pages of `PAGES`."""
        return MiniWobExpert()
