"""Environment and simulated user without a model: the domain's expert plays."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from progrl.agent.seats import ExpertAgent
from progrl.embedding import HashedEncoder
from progrl.environments.retail import Retail
from progrl.rollout import Clock
from progrl.seeds import Seed
from progrl.stages.parts import make_world
from progrl.users.replies import build_reply_memory
from progrl.users.scripted import ScriptedUser
from speed.worker import Job
from speed.workload import Workload

RESPONSES, POOL = 300, 1000
"""Wordings of a user, and those they are drawn from: fewer than the default, to be ready soon; how
many there are does not change what a reply costs."""


class CpuClock(Clock):
    """Sums CPU time: scripted users and tools never wait, and other programs' load is no part."""

    @contextmanager
    def measure(self, component: str) -> Iterator[None]:
        """Add the block's CPU time to `component`."""
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[component] += time.process_time() - start


def retail(work: Workload) -> Job:
    """As many retail episodes as the workload has conversations.

    Facts: the agent's `turns`, and the seconds of CPU time in `environment` and `user`.
    """
    domain, seed = Retail(), Seed.root(1)
    user = ScriptedUser(build_reply_memory(domain, HashedEncoder(), 1, RESPONSES, POOL))
    world = make_world({domain.name: domain}, {domain.name: user}, "a", work.conversations)
    specs = [
        world.spec(
            task, seed.child("task", task.id), seed.child("agent", task.id), work.turns * 2, {}
        )
        for task in islice(domain.tasks("train", 1), work.conversations)
    ]
    agent = ExpertAgent()

    def job() -> dict[str, Any]:
        clock = CpuClock()
        played = world.play(specs, agent, clock)
        turns = sum(len(trajectory.turns) for trajectory in played)
        return {"turns": turns, **{name: clock.seconds[name] for name in ("environment", "user")}}

    return job
