"""The interface of three choices, behind which any domain can stand.

The agent has one tool, `interact_with_env(choice, content)`:

| choice | what it does |
|---|---|
| action | says `content` to the user, or tries it out |
| search | asks for outside knowledge; a domain with plain tools lists them, or shows one by name |
| answer | hands in a solution; a domain with plain tools makes the call that `content` writes |
| finish | ends the episode, with `content` as the last words |

Tasks, rewards and verdicts are those of the domain, which sees native actions as ever.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from progrl.dialogue.calls import parsed_call, written_call
from progrl.dialogue.messages import Action, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import Domain, Environment, Expert, State, StepResult
from progrl.errors import MalformedAction

Choice = Literal["action", "search", "answer"]
Interface = Literal["native", "three_choice"]
INTERACT = "interact_with_env"
FINISH = "finish"
_KEYS = {"choice", "content"}
_OPTIONAL = ("families", "task_count", "answer", "static", "options", "service")


@dataclass(frozen=True, slots=True)
class Use:
    """What a choice stands for: a tool, whose argument `argument` (if any) is the content."""

    tool: str
    argument: str = ""


Choices = Mapping[Choice, Use | None]
"""What each choice that a domain offers stands for; None is words to the user."""


def offered(choices: Choices | None) -> list[str]:
    """The names of the choices; all three where a domain does not say which it offers."""
    return [*(choices if choices is not None else ("action", "search", "answer")), FINISH]


def interact_tool(choices: Choices | None, tools: Sequence[ToolSpec]) -> ToolSpec:
    """The one tool of the interface; it writes where one of the tools behind it does."""
    names = offered(choices)
    schema = {
        "type": "object",
        "properties": {
            "choice": {"type": "string", "enum": names},
            "content": {"type": "string", "description": "words, a query, or a solution"},
        },
        "required": ["choice", "content"],
        "additionalProperties": False,
    }
    writes = any(tool.writes for tool in tools)
    return ToolSpec(INTERACT, f"Interact: {', '.join(names)}.", schema, writes)


class ChoiceEnvironment:
    """An environment behind the interface. `inner` is the environment itself."""

    def __init__(self, inner: Environment, choices: Choices | None) -> None:
        self.inner = inner
        self.reward_bounds = inner.reward_bounds
        self._choices = choices

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """The interface's tool, whatever tools the environment has."""
        self._tools = self.inner.reset(task)
        self._tool = interact_tool(self._choices, self._tools)
        self._offered: list[str] = self._tool.parameters["properties"]["choice"]["enum"]
        return (self._tool,)

    def step(self, action: Action) -> StepResult:
        """Do what the choice stands for; words outside of the interface are words to the user."""
        if isinstance(action, Say):
            return self._pass(action)
        if action.name != INTERACT:
            return _error(f"no tool {action.name}; call {INTERACT}")
        try:
            given = action.arguments
            plain = given.keys() == _KEYS and type(given["content"]) is str
            if not plain or given["choice"] not in self._offered:  # the slow validator says why
                self._tool.check(given)
            return self._choose(given["choice"], given["content"])
        except MalformedAction as error:
            return _error(str(error))

    def hear(self, reply: UserReply) -> StepResult:
        """As the environment does."""
        return self._kept(self.inner.hear(reply))

    def outcome(self) -> Outcome:
        """The environment's verdict."""
        return self.inner.outcome()

    def _choose(self, choice: Any, content: str) -> StepResult:
        if choice == FINISH:
            return replace(self._pass(Say(content, closing=True)), done=True)
        if self._choices is not None:
            use = self._choices[choice]
            if use is None:
                return self._say(content)
            return self._pass(ToolCall(use.tool, {use.argument: content} if use.argument else {}))
        if choice == "action":
            return self._say(content)
        if choice == "answer":
            return self._pass(parsed_call(content, self._tools))
        return StepResult(self._shown(content.strip()))

    def _say(self, content: str) -> StepResult:
        if not content.strip():
            return _error("content: there is nothing to say")
        result = self._pass(Say(content))
        return result if result.failed else replace(result, said=content)

    def _shown(self, name: str) -> str:
        """One tool, or the names of all."""
        for tool in self._tools:
            if tool.name == name:
                needed = set(tool.parameters.get("required", ()))
                fields = [
                    f"{key}=..." if key in needed else f"[{key}=...]"
                    for key in tool.parameters.get("properties", {})
                ]
                return f"{' '.join([name, *fields])} : {tool.description}"
        return f"tools {' '.join(tool.name for tool in self._tools)}"

    def _pass(self, action: Action) -> StepResult:
        return self._kept(self.inner.step(action))

    def _kept(self, result: StepResult) -> StepResult:
        """New tools are behind the interface, too."""
        if result.tools is not None:
            self._tools = result.tools
        return replace(result, tools=None)


def _error(text: str) -> StepResult:
    return StepResult(f"error: {text}", failed=True)


class ChoiceExpert:
    """The domain's expert, whose actions are put as choices."""

    def __init__(self, inner: Expert, choices: Choices | None) -> None:
        self._inner = inner
        self._choices = choices or {}

    def next_action(self, state: State) -> Action:
        """What the expert would do, as a call of the interface.

        Raises:
            EnvironmentFault: the episode is not played behind the interface.
        """
        inner = state.played_in(ChoiceEnvironment).inner
        action = self._inner.next_action(replace(state, environment=inner))
        if isinstance(action, Say):
            return _chosen(FINISH if action.closing else "action", action.text)
        for choice, use in self._choices.items():
            if use is not None and use.tool == action.name:
                return _chosen(choice, str(action.arguments.get(use.argument, "")))
        return _chosen("answer", written_call(action))


def _chosen(choice: str, content: str) -> ToolCall:
    return ToolCall(INTERACT, {"choice": choice, "content": content})


class ChoiceDomain:
    """A domain behind the interface: the same tasks, users and verdicts.

    Where the domain declares `choices`, they say what each choice stands for; else its tools are
    listed by `search` and called by `answer`.
    """

    def __init__(self, inner: Domain) -> None:
        self.inner = inner
        self.name, self.description = inner.name, inner.description
        self.choices: Choices | None = getattr(inner, "choices", None)
        self.tools: tuple[ToolSpec, ...] = (interact_tool(self.choices, inner.tools),)
        self.policy = inner.policy + _explained(self.choices, inner.tools)
        for name in _OPTIONAL:  # what a domain may have beyond its contract
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The domain's tasks."""
        return self.inner.tasks(split, seed)

    def environment(self) -> ChoiceEnvironment:
        """A fresh environment behind the interface."""
        return ChoiceEnvironment(self.inner.environment(), self.choices)

    def user_view(self, task: Task) -> UserView:
        """The domain's view."""
        return self.inner.user_view(task)

    def expert(self) -> ChoiceExpert:
        """The domain's expert."""
        return ChoiceExpert(self.inner.expert(), self.choices)


def _explained(choices: Choices | None, tools: Sequence[ToolSpec]) -> str:
    lines = [f"Do everything by {INTERACT}(choice, content)."]
    if choices is None:
        lines += [
            "action: say the content to the user.",
            "search: list the tools, or show the one that the content names.",
            "answer: call a tool, written as: name key=value key='two words'.",
        ]
    else:
        by_name = {tool.name: tool for tool in tools}
        lines += [f"{choice}: {_use(use, by_name)}" for choice, use in choices.items()]
    return "\n".join([*lines, "finish: end the conversation.", ""])


def _use(use: Use | None, tools: Mapping[str, ToolSpec]) -> str:
    if use is None:
        return "say the content to the user."
    tool = tools[use.tool]
    if not use.argument:
        return tool.description
    return (
        f"{tool.description} Content: {tool.parameters['properties'][use.argument]['description']}."
    )
