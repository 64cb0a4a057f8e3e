"""An agent that is a language model behind an endpoint of the OpenAI protocol.

It is told of its tools in words, and calls them in words, so that the endpoint need not know about
tools: what a local chat model is told by the same format.
"""

from collections.abc import Sequence
from pathlib import Path

from progrl.agent.seats import Decision
from progrl.config.users import LlmUser as EndpointConfig
from progrl.dialogue.chat import call_in, system_text, without_thoughts
from progrl.dialogue.messages import Message, Say, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.environments.contracts import Domain, Environment
from progrl.errors import ConfigurationError, EngineFault, MalformedAction, UserFault
from progrl.seeds import Seed
from progrl.users.llm_endpoint import Endpoint


class EndpointAgent:
    """Asks an endpoint for each message of the agent.

    Args:
        config: where the endpoint is, and within which bounds it is asked.
        project: folder that the cache's is relative to.
    """

    def __init__(self, config: EndpointConfig, project: Path) -> None:
        self.name = config.model
        self.endpoint = Endpoint(config, project, "agent")

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> "_EndpointSeat":
        """A seat with a conversation of its own; message n is sampled with `seed`'s child n."""
        return _EndpointSeat(self.endpoint, domain.policy, tools, seed)

    def close(self) -> None:
        """Close the connections."""
        self.endpoint.close()


class _EndpointSeat:
    def __init__(
        self, endpoint: Endpoint, policy: str, tools: Sequence[ToolSpec], seed: Seed
    ) -> None:
        self.tools = tuple(tools)
        self._endpoint, self._seed = endpoint, seed
        self._messages = [_message("system", system_text(policy, tools))]
        self._turn = 0

    async def act(self, observation: Message) -> Decision:
        words = observation.content
        if observation.role == "tool":
            words = f"<tool_response>\n{words}\n</tool_response>"
        self._messages.append(_message("user", words))
        seed = self._seed.child("turn", self._turn).value % 2**31  # servers take 32 bits
        self._turn += 1
        try:
            text = await self._endpoint.ask(self._messages, seed)
        except UserFault as error:
            raise EngineFault(str(error)) from None
        self._messages.append(_message("assistant", text))
        try:
            plain = without_thoughts(text).strip()
            action = call_in(plain, self.tools) or Say(plain)
        except MalformedAction as malformed:
            return Decision(None, text, str(malformed))
        return Decision(action, text)

    def close(self) -> None:
        self._messages = []


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def endpoint_config(
    base_url: str, model: str | None, key_variable: str, temperature: float
) -> EndpointConfig:
    """The configuration of an endpoint named on the command line.

    Raises:
        ConfigurationError: no model is named, or the address is none.
    """
    if not model:
        raise ConfigurationError("--agent is an address: name the endpoint's model by --model.")
    try:
        return EndpointConfig(
            kind="llm",
            family="all",
            base_url=base_url,
            model=model,
            key_variable=key_variable,
            temperature=temperature,
            max_tokens=2048,
            concurrency=8,
            timeout=120.0,
            retries=5,
            cache=Path(".cache/llm_agent"),
            price_in=0.0,
            price_out=0.0,
        )
    except ValueError as error:
        raise ConfigurationError(f"--agent {base_url}: {error}") from None
