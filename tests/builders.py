"""Small records that several tests build on."""

from typing import Any

from progrl.dialogue.messages import Say
from progrl.dialogue.tasks import Milestone, Task, content_hash
from progrl.dialogue.trajectories import End, Outcome, Trajectory, Turn


def make_task(number: int = 0, level: int = 1, expert_turns: int = 2, **changes: Any) -> Task:
    """A task that differs from others by `number` alone."""
    parts = ("toy", f"query {number}", {"want": number}, {"world": number}, {})
    fields: dict[str, Any] = {
        "id": f"toy-{content_hash(*parts)[:16]}",
        "domain": "toy",
        "family": "look",
        "level": level,
        "query": parts[1],
        "goal": parts[2],
        "setup": parts[3],
        "schedule": parts[4],
        "milestones": (Milestone("seen", 0.5), Milestone("told", 0.5)),
        "expert_turns": expert_turns,
        "seed": number,
    }
    return Task(**{**fields, **changes})


def make_trajectory(
    gains: tuple[float, ...] = (0.5, 0.5),
    success: bool = True,
    expert_turns: int = 2,
    end: End = End.CLOSED,
    policy_kept: bool = True,
    tokens: int = 3,
) -> Trajectory:
    """A trajectory of one turn a gain; each turn reads `tokens` ids and samples as many."""
    turns = [
        Turn(
            action=Say("hello", closing=number == len(gains) - 1),
            text="hello",
            gain=gain,
            domain=float(policy_kept),
            context=list(range(1, tokens + 1)),
            sampled=list(range(1, tokens + 1)),
            logprobs=[-1.0] * tokens,
        )
        for number, gain in enumerate(gains)
    ]
    outcome = Outcome(success, sum(gains), (), policy_kept, float(policy_kept))
    return Trajectory(
        task_id="toy-1",
        domain="toy",
        family="look",
        level=1,
        expert_turns=expert_turns,
        query="query",
        horizon=20,
        seed=1,
        turns=turns,
        end=end,
        outcome=None if end is End.FAULT else outcome,
    )
