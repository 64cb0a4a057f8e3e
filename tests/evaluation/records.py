"""Small records, written by hand, for the tests of this folder."""

from collections.abc import Sequence
from typing import Any

from progrl.dialogue.messages import Action, Say, ToolCall
from progrl.dialogue.tasks import Milestone, Task, content_hash
from progrl.dialogue.trajectories import End, Outcome, Trajectory, Turn
from progrl.evaluation.metrics import Result

LOOK = ToolCall("look_up", {"order": "12"})
BYE = Say("Done. Goodbye.", closing=True)


def make_task(number: int = 0, schedule: dict[str, Any] | None = None, level: int = 1) -> Task:
    parts = ("retail", f"Task {number}.", {"number": number}, {}, schedule or {})
    digest = content_hash(*parts)
    milestones = (Milestone("done", 1.0),)
    _, query, goal, setup, schedule = parts
    return Task(
        f"retail-{digest[:16]}",
        "retail",
        f"family_{level}",
        level,
        query,
        goal,
        setup,
        schedule,
        milestones,
        2,
        number,
    )


def make_trajectory(
    task: Task,
    actions: Sequence[Action] = (LOOK, BYE),
    end: End = End.CLOSED,
    success: bool = True,
    progress: float = 1.0,
    trial: int = 0,
    kept: bool = True,
) -> Trajectory:
    turns = [
        Turn(action, str(action), *(("found", "tool") if isinstance(action, ToolCall) else ()))
        for action in actions
    ]
    return Trajectory(
        task_id=task.id,
        domain=task.domain,
        family=task.family,
        level=task.level,
        expert_turns=task.expert_turns,
        query=task.query,
        horizon=20,
        seed=1,
        turns=turns,
        end=end,
        fault="EngineFault: gone" if end is End.FAULT else "",
        outcome=None if end is End.FAULT else Outcome(success, progress, (), kept, 1.0),
        tags={"trial": trial},
    )


def make_result(task: str, success: bool | None = True, **changes: Any) -> Result:
    """A result of a task of level 1; with `success` None it was lost to a fault."""
    known: dict[str, Any] = {
        "family": "cancel",
        "level": 1,
        "trial": 0,
        "expert_turns": 2,
        "goal_change": False,
        "tool_failure": False,
        "end": "closed",
        "fault": "",
    }
    if success is None:
        known |= {"end": "fault", "fault": "EngineFault: gone"}
    else:
        known |= {
            "success": success,
            "reward": 1.6 if success else 0.1,
            "progress": 1.0 if success else 0.2,
            "efficiency": 0.5 if success else 0.0,
            "turns": 2 if success else 8,
            "tool_calls": 1,
            "failed_calls": 0,
            "policy_kept": True,
        }
    return Result(task=task, **{**known, **changes})
