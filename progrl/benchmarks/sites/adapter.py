"""The local sites as a benchmark."""

import weakref
from collections.abc import Iterator

from progrl.benchmarks.base import Silent, numbers, task, tool
from progrl.benchmarks.browser import ACTIONS, PageGame, Seen, Tab
from progrl.benchmarks.sites.server import Served
from progrl.benchmarks.sites.store import Store
from progrl.benchmarks.sites.tasks import FAMILIES, Step, answers, left, sent
from progrl.dialogue.messages import Action, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.environments.contracts import State, StepResult
from progrl.seeds import Seed

ROUNDS = 10
"""The worlds of a split are numbered from here."""
HOME = "The start page has the links Shop, Cart, Forum and Content."
TOOLS: tuple[ToolSpec, ...] = (
    tool("look", "See the page."),
    *ACTIONS,
    tool(
        "answer",
        "End the task with an answer; where nothing was asked, with done.",
        text={"type": "string"},
    ),
)


class SitesEnvironment(PageGame):
    """One episode: sites of its own, and a page on them."""

    tools = TOOLS

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Fill the database, serve it, and open the start page."""
        self._task = task
        self.served = Served(task.setup["world"])
        weakref.finalize(self, self.served.close)
        origin = f"{self.served.address}/"
        self._tab = Tab(lambda url: url.startswith(origin))
        self._solved = self._ended = False
        self._tab.do("to open the sites", lambda page: page.goto(origin))
        return TOOLS

    def _judged(self, call: ToolCall) -> StepResult:
        goal = self._task.goal
        solved = (
            answers(call.arguments["text"], goal["answer"])
            and sent(self.served.events, goal["events"])
            and left(self.served.store, self._task.setup["world"], goal["changes"])
        )
        self._tab.close()
        self.served.close()
        return self._end(solved)


class SitesExpert:
    """Finds the elements that the task's steps name in what it sees."""

    def next_action(self, state: State) -> Action:
        """Look, then one step after the other."""
        done = sum(message.role == "assistant" for message in state.history)
        gold: list[Step] = state.task.goal["gold"]
        if done == 0:
            return ToolCall("look")
        if done > len(gold):
            return Say("done", closing=True)
        kind, *given = gold[done - 1]
        if kind == "answer":
            return ToolCall("answer", {"text": given[0]})
        ref = Seen(state.history[-1].content).ref(given[0], given[1])
        more = {"fill": "text", "select_option": "option"}
        extra = {more[kind]: given[2]} if kind in more else {}
        return ToolCall(kind, {"ref": ref, **extra})


class LocalSites(Silent):
    """Nine kinds of tasks in turn, each in a world of its own."""

    name = "local_sites"
    description = "Do tasks in a shop, a forum and a content editor, in real pages."
    policy = (
        "Do what is asked in the web pages, and nothing else. You see the accessibility tree of a "
        "page; an element is named by its ref, which changes from page to page. End with answer.\n"
    )
    tools = TOOLS

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The families in turn: 10 worlds where `split` is test, else without end."""
        for world in numbers(split, seed, ROUNDS):
            for family in FAMILIES:
                yield self._task(family, world)

    def _task(self, family: str, world: int) -> Task:
        level, make = FAMILIES[family]
        store = Store(world)
        random = Seed(f"benchmark={self.name}").child("world", world).child("task", family).random()
        query, goal = make(store, random)
        store.close()
        words = f"{query} {HOME}"
        return task(self.name, family, level, words, goal, {"world": world}, len(goal["gold"]) + 1)

    def turns(self, task: Task) -> int:
        """Twice what the expert needs, and 10 to look around."""
        return 2 * task.expert_turns + 10

    def environment(self) -> SitesEnvironment:
        """A fresh environment."""
        return SitesEnvironment()

    def expert(self) -> SitesExpert:
        """Follows the steps that the task's goal has."""
        return SitesExpert()
