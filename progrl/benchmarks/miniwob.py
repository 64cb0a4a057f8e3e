"""MiniWoB++: small tasks in real web pages (package `miniwob`), seen as an accessibility tree.

The pages run in Chromium; the page's own seed makes the task, its own check the reward. Only the
pages are used: the package's way to drive them needs Selenium. The expert reads what agents read.
"""

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from progrl.benchmarks.base import Silent, numbers, task
from progrl.benchmarks.browser import ACTIONS, PageGame, Seen, Tab, tab
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

Answers = Callable[[str, Seen], list[ToolCall]]


def _click(ref: str) -> ToolCall:
    return ToolCall("click", {"ref": ref})


def _fill(ref: str, text: str) -> ToolCall:
    return ToolCall("fill", {"ref": ref, "text": text})


def _quoted(words: str) -> list[str]:
    return re.findall(r'"(.*?)"', words)


def _submit(seen: Seen, name: str = "Submit") -> ToolCall:
    return _click(seen.ref("button", name))


def _button(words: str, seen: Seen) -> list[ToolCall]:
    return [_click(seen.ref("button", _quoted(words)[0]))]


def _buttons(words: str, seen: Seen) -> list[ToolCall]:
    return [_click(seen.ref("button", name)) for name in re.findall(r"button ([A-Z]+)", words)]


def _boxes(words: str, seen: Seen) -> list[ToolCall]:
    found = re.search(r"Select (.*) and click", words)
    names = found[1].split(", ") if found and found[1] != "nothing" else []
    return [*(_click(seen.ref("checkbox", name)) for name in names), _submit(seen)]


def _option(words: str, seen: Seen) -> list[ToolCall]:
    found = re.search(r"Select (.*) and click", words)
    return [_click(seen.ref("radio", found[1] if found else "")), _submit(seen)]


def _list(words: str, seen: Seen) -> list[ToolCall]:
    found = re.search(r"Select (.*) from the list", words)
    chosen = {"ref": seen.ref("combobox"), "option": found[1] if found else ""}
    return [ToolCall("select_option", chosen), _submit(seen)]


def _texts(words: str, seen: Seen) -> list[ToolCall]:
    """As many texts as there are fields, or one text for all of them."""
    fields, texts = seen.refs("textbox"), _quoted(words)
    if len(texts) < len(fields):
        texts = texts[:1] * len(fields)
    filled = [_fill(ref, text) for ref, text in zip(fields, texts, strict=False)]
    return [*filled, _click(seen.ref("button"))]


def _date(words: str, seen: Seen) -> list[ToolCall]:
    found = re.search(r"\d+/\d+/\d+", words)
    month, day, year = found[0].split("/") if found else ("", "", "")
    return [_fill(seen.ref("textbox"), f"{year}-{month}-{day}"), _submit(seen)]


def _focus(words: str, seen: Seen) -> list[ToolCall]:
    found = re.search(r"(\d+)(?:st|nd|rd|th)", words)
    return [_click(seen.refs("textbox")[int(found[1]) - 1 if found else 0])]


def _tab(words: str, seen: Seen) -> list[ToolCall]:
    return [_click(seen.ref("link", words.removeprefix("Click on ").rstrip(".")))]


SOLVERS: dict[str, tuple[int, Answers]] = {
    "click-button": (1, _button),
    "click-button-sequence": (2, _buttons),
    "click-checkboxes": (3, _boxes),
    "click-checkboxes-large": (5, _boxes),
    "click-option": (2, _option),
    "click-tab": (1, _tab),
    "click-test": (1, lambda words, seen: [_click(seen.ref("button"))]),
    "click-test-2": (1, _buttons),
    "choose-list": (2, _list),
    "enter-password": (3, _texts),
    "enter-text": (2, _texts),
    "focus-text": (1, _focus),
    "focus-text-2": (1, _focus),
    "login-user": (3, _texts),
}
"""The pages that the expert solves, with their complexity."""


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
    """Makes a plan of the opening words, and follows it."""

    def next_action(self, state: State) -> Action:
        """The next step of the plan, closing after the last."""
        plan = solution(state.task.family, state.task.query)
        done = sum(message.role == "assistant" for message in state.history)
        return plan[done] if done < len(plan) else Say("done", closing=True)


def solution(name: str, query: str) -> list[ToolCall]:
    """What solves an episode whose opening words are `query`."""
    words, _, snapshot = query.partition("\n")
    return SOLVERS[name][1](words, Seen(snapshot))


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
            for name in SOLVERS:
                yield self._task(name, number)

    def _task(self, name: str, number: int) -> Task:
        with tab(_local) as opened:
            query = f"{begin(opened, name, number)}\n{opened.snapshot()}"
        setup = {"page": name, "seed": number}
        turns = len(solution(name, query))
        return task(self.name, name, SOLVERS[name][0], query, {}, setup, turns)

    def turns(self, task: Task) -> int:
        """Twice what the expert needs, and 10 to look around."""
        return 2 * task.expert_turns + 10

    def environment(self) -> MiniWobEnvironment:
        """A fresh environment."""
        return MiniWobEnvironment()

    def expert(self) -> MiniWobExpert:
        """Solves the pages of `SOLVERS`."""
        return MiniWobExpert()
