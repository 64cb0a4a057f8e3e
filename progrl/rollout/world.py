"""All that an agent plays in: domains and users, with the draw of profiles."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from progrl.agent.seats import Agent
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory, pack, unpack
from progrl.environments.contracts import Domain
from progrl.ranks import ALONE, Ranks
from progrl.rollout.collect import collecting
from progrl.rollout.episode import Clock, EpisodeSpec
from progrl.seeds import Seed
from progrl.users.contracts import KeepsAccount, Profile, UserSimulator


@dataclass(frozen=True)
class World:
    """Domains and their users, by name.

    Attributes:
        draw: the profile of a user whose node of the seed tree is given.
        in_flight: most episodes at a time, of one process.
        ranks: the processes among which episodes are divided.
    """

    domains: Mapping[str, Domain]
    users: Mapping[str, UserSimulator]
    draw: Callable[[Seed], Profile]
    in_flight: int
    ranks: Ranks = ALONE

    def spec(
        self, task: Task, user: Seed, agent: Seed, horizon: int, tags: dict[str, Any]
    ) -> EpisodeSpec:
        """An episode whose user, wordings and profile alike, is decided by `user` alone."""
        return EpisodeSpec(task, agent, user.value, horizon, self.draw(user), tags)

    def play(
        self,
        specs: Sequence[EpisodeSpec],
        agent: Agent,
        clock: Clock | None = None,
        done: Callable[[int], None] | None = None,
    ) -> list[Trajectory]:
        """Play `specs`; one trajectory each, in their order.

        Each process plays its block of them, and then has those of all.
        """
        return self.shared(asyncio.run(self.playing(specs, agent, clock, done)))

    def playing(
        self,
        specs: Sequence[EpisodeSpec],
        agent: Agent,
        clock: Clock | None = None,
        done: Callable[[int], None] | None = None,
    ) -> Coroutine[Any, Any, list[Trajectory]]:
        """Plays this process's block of `specs`; it talks to no other process."""
        ranks = self.ranks

        def about(ended: int) -> None:
            if done is not None:
                done(min(ended * ranks.size, len(specs)))

        return collecting(
            ranks.block(specs),
            self.domains.__getitem__,
            agent,
            self.users.__getitem__,
            self.in_flight,
            clock,
            about,
        )

    def shared(self, played: list[Trajectory]) -> list[Trajectory]:
        """What all processes have played, block by block; all must call it."""
        if self.ranks.size == 1:
            return played
        return [t for message in self.ranks.gather(pack(played)) for t in unpack(message)]

    def spent(self) -> dict[str, float]:
        """What users that keep an account have spent so far, by `user/...`; else nothing.

        In all processes together, all of which must call it.
        """
        kept = {id(user): user for user in self.users.values() if isinstance(user, KeepsAccount)}
        total: Counter[str] = Counter()
        for user in kept.values():
            total.update({f"user/{name}": value for name, value in user.spent().items()})
        names = sorted(total)
        return dict(zip(names, self.ranks.total([total[name] for name in names]), strict=True))
