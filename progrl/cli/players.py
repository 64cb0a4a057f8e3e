"""The two sides of a benchmark's episodes, as the command line names them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from progrl.cli.command import Shared
from progrl.cli.stages import UserKind
from progrl.config import Config
from progrl.errors import ConfigurationError

if TYPE_CHECKING:
    from progrl.agent.seats import Agent
    from progrl.benchmarks.contracts import Adapter
    from progrl.benchmarks.players import Ask
    from progrl.dialogue.users import UserView
    from progrl.users.contracts import UserSimulator


def measured(
    shared: Shared,
    config: Config,
    agent: str,
    model: str | None,
    key_variable: str,
    temperature: float,
) -> "Agent":
    """The agent of a name or a folder, or the model behind an address.

    Raises:
        ConfigurationError: it is none of these, or an address without a model.
    """
    from progrl.benchmarks.endpoint import EndpointAgent, endpoint_config
    from progrl.cli.episodes import agent_of

    if agent.startswith(("http://", "https://")):
        endpoint = endpoint_config(agent, model, key_variable, temperature)
        return EndpointAgent(endpoint, shared.project)
    return agent_of(shared, config, agent, temperature)


@contextmanager
def closing(*sides: object) -> Iterator[None]:
    """Close the connections of those that have some."""
    from progrl.benchmarks.endpoint import EndpointAgent
    from progrl.benchmarks.players import ScenarioUser

    try:
        yield
    finally:
        for side in sides:
            if isinstance(side, EndpointAgent | ScenarioUser):
                side.close()


def player_of(
    shared: Shared, config: Config, adapter: "Adapter", kind: UserKind | None
) -> "UserSimulator | None":
    """Who plays the user; None for the benchmark's own rule.

    Raises:
        ConfigurationError: the benchmark's users have no scenario, or no endpoint is configured.
    """
    from progrl.benchmarks.customers import HasScenario
    from progrl.benchmarks.players import PersonUser, ScenarioUser
    from progrl.config.users import LlmUser as LlmConfig

    if not isinstance(adapter, HasScenario):
        if kind in {"llm", "human"}:
            raise ConfigurationError(
                f"--user {kind} has no effect on {adapter.name}: its users say fixed lines, if any."
            )
        return None
    if kind == "human":
        from progrl.cli.play import AskUser, briefing, described, show
        from progrl.cli.view import spoken

        def begin(view: "UserView") -> "Ask":
            show(*briefing(view), *map(described, adapter.user_tools), spoken("user", view.query))
            return AskUser(view)

        return PersonUser(begin, adapter.user_tools)
    if kind != "scripted" and isinstance(config.user, LlmConfig):
        return ScenarioUser(config.user, shared.project, adapter)
    if kind == "llm":
        raise ConfigurationError(
            "--user llm: the configuration names no endpoint. Set the part `user`, or name a "
            "profile that does; docs/users.md shows how."
        )
    return None
