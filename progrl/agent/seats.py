"""Who takes the agent's place in an episode: a model, the expert, a person, or none to speak of."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from progrl.agent.advice import Advice, Advisor, Guide
from progrl.agent.engines.contracts import Conversation, Engine, SamplingParams
from progrl.dialogue.calls import parsed_call
from progrl.dialogue.codec import Bias, Codec
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import assistant_message
from progrl.environments.contracts import Domain, Environment, Expert, State
from progrl.errors import MalformedAction
from progrl.seeds import Seed


@dataclass(frozen=True, slots=True)
class Decision:
    """One message of an agent.

    Attributes:
        action: what it does; None where the text is no action.
        text: what it wrote.
        error: why there is no action, in words for the agent; "" otherwise.
        context: ids that were read before it wrote; empty for agents without tokens.
        sampled: ids that it sampled.
        logprobs: of `sampled`, under the policy, the bias and the temperature that sampled them.
        bias: what was added to logits where the first of `sampled` was chosen.
        full: the agent's window is full: there is no action, and none will come.
    """

    action: Action | None
    text: str
    error: str = ""
    context: Sequence[int] = ()
    sampled: Sequence[int] = ()
    logprobs: Sequence[float] = ()
    bias: Bias = ()
    full: bool = False


class Seat(Protocol):
    """An agent in one episode. Whoever runs the episode sets `tools` when they change."""

    tools: tuple[ToolSpec, ...]

    async def act(self, observation: Message) -> Decision:
        """Answer what came last: the opening query, a user's reply, or a tool's result.

        Raises:
            EngineFault: the engine could not sample.
        """
        ...

    def close(self) -> None:
        """The episode is over; idempotent."""
        ...


class Agent(Protocol):
    """Takes a seat in each of many episodes."""

    name: str

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        """A seat in an episode of `task`; all that is random in it comes from `seed`."""
        ...


class _Simple:
    """A seat that decides by a function of its history and the number of its turn."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.tools = tuple(tools)
        self.history: list[Message] = []
        self.turn = 0

    async def act(self, observation: Message) -> Decision:
        self.history.append(observation)
        action = self.decide()
        self.turn += 1
        self.history.append(assistant_message(action, str(action)))
        return Decision(action, str(action))

    def decide(self) -> Action:
        return Say("", closing=True)

    def close(self) -> None:
        self.history = []


class DoNothingAgent:
    """Closes the conversation with its first message; stands beside every result."""

    name = "do_nothing"

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        """A seat that says goodbye at once."""
        return _Simple(tools)


class _ExpertSeat(_Simple):
    def __init__(
        self, expert: Expert, task: Task, environment: Environment, tools: Sequence[ToolSpec]
    ) -> None:
        super().__init__(tools)
        self._expert, self._task, self._environment = expert, task, environment

    def decide(self) -> Action:
        return self._expert.next_action(State(self._task, self._environment, self.history))


class ExpertAgent:
    """Does what the domain's expert does."""

    name = "expert"

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        """A seat for a fresh expert of `domain`."""
        return _ExpertSeat(domain.expert(), task, environment, tools)


class _RandomSeat(_Simple):
    def __init__(self, tools: Sequence[ToolSpec], random: Random) -> None:
        super().__init__(tools)
        self._random = random

    def decide(self) -> Action:
        random, heard = self._random, [w for m in self.history for w in m.content.split()]
        if not self.tools or random.random() < 0.3:
            return Say(" ".join(random.sample(heard, min(len(heard), 5))), random.random() < 0.2)
        tool = random.choice(self.tools)
        fields = sorted(tool.parameters.get("properties", {}).items())
        return ToolCall(tool.name, {key: self._value(schema, heard) for key, schema in fields})

    def _value(self, schema: object, heard: Sequence[str]) -> object:
        random, schema = self._random, schema if isinstance(schema, dict) else {}
        if schema.get("enum"):
            return random.choice(schema["enum"])
        match schema.get("type"):
            case "integer":
                return random.randrange(10)
            case "number":
                return random.randrange(1000) / 10
            case "boolean":
                return random.random() < 0.5
            case "array":
                return [self._value(schema.get("items"), heard)]
            case "object":
                return {}
            case _:
                return random.choice(heard).strip(".,?!") if heard else "?"


class RandomAgent:
    """Calls random tools with words it has heard, and says some; most calls fit the schema."""

    name = "random"

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        """A seat whose choices follow from `seed`."""
        return _RandomSeat(tools, seed.random())


class _ModelSeat:
    def __init__(
        self, agent: "ModelAgent", task: Task, policy: str, tools: Sequence[ToolSpec], seed: Seed
    ) -> None:
        self.tools = tuple(tools)
        self._agent, self._policy, self._seed = agent, policy, seed
        advisor = agent.advisor
        self._guide: Guide | None = advisor.guide(task.id, task.query) if advisor else None
        self._conversation: Conversation = agent.engine.open()
        self._turn = 0
        self._cut = False

    async def act(self, observation: Message) -> Decision:
        agent = self._agent
        advice = self._guide.advise(self.tools) if self._guide else Advice()
        if self._turn == 0:
            context = agent.codec.open(self._policy, self.tools, observation.content, advice.hint)
        else:
            context = agent.codec.observe(observation, self._cut, advice.hint)
        self._conversation.extend(context)
        bias = agent.codec.lean(advice.lean) if advice.lean else ()
        params = SamplingParams(
            agent.temperature,
            agent.max_tokens,
            agent.codec.stop_ids,
            self._seed.child("turn", self._turn).value,
            bias,
        )
        self._turn += 1
        sample = await self._conversation.sample(params)
        self._cut = sample.cause != "stop"
        text = agent.codec.text(sample.ids)
        action, error = None, ""
        full = sample.cause == "window"
        if not full:
            try:
                action = agent.codec.parse(sample.ids, self.tools)
            except MalformedAction as malformed:
                error = str(malformed)
        if self._guide is not None and action is not None:
            self._guide.took(action)
        return Decision(action, text, error, context, sample.ids, sample.logprobs, bias, full)

    def close(self) -> None:
        self._conversation.close()


class ModelAgent:
    """A language model: what it reads and samples are token ids, kept as they are.

    Args:
        engine: samples.
        codec: between messages and ids.
        temperature: 0 is greedy.
        max_tokens: most tokens of a message.
        name: in results and records.
        advisor: says before each message which tool may come next.
    """

    def __init__(
        self,
        engine: Engine,
        codec: Codec,
        temperature: float,
        max_tokens: int,
        name: str = "model",
        advisor: Advisor | None = None,
    ) -> None:
        self.engine = engine
        self.codec = codec
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.name = name
        self.advisor = advisor

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        """A seat with a conversation of its own; message n is sampled with `seed`'s child n."""
        return _ModelSeat(self, task, domain.policy, tools, seed)


Ask = Callable[[Sequence[Message], Sequence[ToolSpec]], Awaitable[str]]
"""Shows a person the conversation and the tools, and returns the line that they type."""


def typed_action(line: str, tools: Sequence[ToolSpec]) -> Action:
    """What a person's line means.

    `/close words` closes, `/call name {"argument": "value"}` or `/call name argument=value` calls
    a tool, anything else is said to the user.

    Raises:
        MalformedAction: a call that is none.
    """
    command, _, rest = line.strip().partition(" ")
    if command == "/close":
        return Say(rest.strip(), closing=True)
    if command != "/call":
        return Say(line.strip())
    return parsed_call(rest, tools)


class _HumanSeat:
    def __init__(self, ask: Ask, tools: Sequence[ToolSpec]) -> None:
        self.tools = tuple(tools)
        self._ask = ask
        self._history: list[Message] = []

    async def act(self, observation: Message) -> Decision:
        self._history.append(observation)
        line = await self._ask(tuple(self._history), self.tools)
        action, error = None, ""
        try:
            action = typed_action(line, self.tools)
        except MalformedAction as malformed:
            error = str(malformed)
        self._history.append(assistant_message(action, line))
        return Decision(action, line, error)

    def close(self) -> None:
        self._history = []


class HumanAgent:
    """A person, who types what the agent says and calls."""

    name = "human"

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        """A seat that asks the person for each message."""
        return _HumanSeat(self._ask, tools)
