"""Many episodes in flight at once."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from progrl.agent.seats import Agent
from progrl.dialogue.trajectories import Trajectory
from progrl.environments.contracts import Domain
from progrl.errors import EnvironmentFault
from progrl.rollout.episode import Clock, EpisodeSpec, play
from progrl.users.contracts import UserSimulator


def collect(
    specs: Sequence[EpisodeSpec],
    domains: Callable[[str], Domain],
    agent: Agent,
    user: Callable[[str], UserSimulator],
    in_flight: int,
    clock: Clock | None = None,
    done: Callable[[int], None] | None = None,
) -> list[Trajectory]:
    """Play all `specs` in an event loop of its own, as `collecting` does."""
    return asyncio.run(collecting(specs, domains, agent, user, in_flight, clock, done))


async def collecting(
    specs: Sequence[EpisodeSpec],
    domains: Callable[[str], Domain],
    agent: Agent,
    user: Callable[[str], UserSimulator],
    in_flight: int,
    clock: Clock | None = None,
    done: Callable[[int], None] | None = None,
) -> list[Trajectory]:
    """Play all `specs`, at most `in_flight` at a time.

    Args:
        domains: the domain by name.
        user: the user simulator of a domain by name.
        clock: sums the seconds by component.
        done: told how many episodes have ended, after each.

    Returns:
        One trajectory a spec, in the order of `specs`, whatever order they ended in.
    """
    room, times = asyncio.Semaphore(in_flight), clock or Clock()
    ended = 0

    async def one(spec: EpisodeSpec) -> Trajectory:
        nonlocal ended
        async with room:
            name = spec.task.domain
            trajectory = await play(spec, domains(name), agent, user(name), times)
        ended += 1
        if done is not None:
            done(ended)
        return trajectory

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(spec)) for spec in specs]
    return [task.result() for task in tasks]


def check_faults(trajectories: Sequence[Trajectory], most: float) -> int:
    """The number of episodes lost to faults.

    Raises:
        EnvironmentFault: their share is above `most`; the message gives the commonest cause.
    """
    faults = Counter(t.fault for t in trajectories if not t.valid)
    lost = faults.total()
    if lost > most * len(trajectories):
        cause, times = faults.most_common(1)[0]
        raise EnvironmentFault(
            f"{lost} of {len(trajectories)} episodes were lost to faults, more than the "
            f"{most:.0%} allowed; {times} of them to: {cause}"
        )
    return lost
