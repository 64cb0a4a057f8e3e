"""What can be played, and the next task of a kind for whoever asks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import Any, Literal

from progrl.agent.seats import Agent
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory
from progrl.environments.contracts import Domain
from progrl.errors import ConfigurationError
from progrl.rollout import EpisodeSpec
from progrl.users.contracts import UserSimulator

Role = Literal["user", "agent"]
LOOKED_AT = 100  # tasks from which the levels of a domain are read
_SEARCHED = 2000  # tasks among which one of a level must be found


@dataclass
class Dealer:
    """All that games are made of. Safe to use from several threads.

    Attributes:
        domains: by name.
        agents: whom a person who is the user can talk to, by name, the first by default.
        tasks: a domain's tasks, without end and the same at each call.
        simulator: who plays the user of a domain; making it may take seconds.
        spec: the episode of a task for a person in a role, against an agent.
        reward: what an episode amounts to.
    """

    domains: Mapping[str, Domain]
    agents: Mapping[str, Agent]
    tasks: Callable[[Domain], Iterator[Task]]
    simulator: Callable[[str], UserSimulator]
    spec: Callable[[Task, Role, str], EpisodeSpec]
    reward: Callable[[Trajectory], float]
    _dealt: dict[tuple[str, int], Iterator[Task]] = field(default_factory=dict, init=False)
    _users: dict[str, UserSimulator] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @cached_property
    def offer(self) -> dict[str, Any]:
        """Environments with their levels, and agents, as JSON values."""
        return {
            "environments": [_described(domain, self.tasks) for domain in self.domains.values()],
            "agents": list(self.agents),
        }

    def deal(self, name: str, level: int) -> Task:
        """The next task of a domain, of any level where `level` is 0.

        Raises:
            ConfigurationError: no such domain, or no task of that level in sight.
        """
        if name not in self.domains:
            raise ConfigurationError(f"There is no environment {name!r} here.")
        with self._lock:
            for _ in range(2):  # a domain with few tasks begins anew
                dealt = self._dealt.setdefault((name, level), self.tasks(self.domains[name]))
                for task in islice(dealt, _SEARCHED):
                    if level in (0, task.level):
                        return task
                del self._dealt[name, level]
        raise ConfigurationError(f"{name} has no task of level {level} in sight: take another.")

    def user(self, name: str) -> UserSimulator:
        """Who plays the user of a domain; made once."""
        with self._lock:
            if name not in self._users:
                self._users[name] = self.simulator(name)
            return self._users[name]


def _described(domain: Domain, tasks: Callable[[Domain], Iterator[Task]]) -> dict[str, Any]:
    seen = list(islice(tasks(domain), LOOKED_AT))
    view = domain.user_view(seen[0])
    return {
        "name": domain.name,
        "description": domain.description,
        "levels": sorted({task.level for task in seen}),
        "talks": bool(view.facts or view.wishes),
    }
