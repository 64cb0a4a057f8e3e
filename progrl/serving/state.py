"""A game as its player may see it, as JSON values."""

from dataclasses import replace
from typing import Any

from progrl.dialogue.trajectories import Trajectory
from progrl.environments.choices import FINISH, ChoiceDomain
from progrl.environments.contracts import Domain
from progrl.reporting.viewer import Entry, ending, entries
from progrl.serving.dealer import Dealer
from progrl.serving.games import Game
from progrl.users.human import brief


def state_of(game: Game, dealer: Dealer) -> dict[str, Any]:
    """What there is to see: to the agent's player no brief, to the user's no tools; to neither,
    before the end, how the episode is judged."""
    return {
        "version": game.version,
        "role": game.role,
        "environment": game.domain.name,
        "level": game.spec.task.level,
        "agent": game.spec.tags["agent"],
        "turn": len(game.trajectory.turns) if game.trajectory else 0,
        "horizon": game.spec.horizon,
        "asked": game.asked,
        "status": "over" if game.over else "yours" if game.waits else "theirs",
        "entries": _entries(game),
        **(_user_side(game) if game.role == "user" else _agent_side(game)),
        "result": _result(game, dealer) if game.over else None,
        "rating": game.rating.stars if game.rating else None,
        "saved": game.saved,
    }


def _entries(game: Game) -> list[dict[str, Any]]:
    if game.trajectory is None:
        return [_entry(Entry("user", game.spec.task.query), False)]
    shown = [entry for entry in entries(game.trajectory) if entry.text or entry.kind != "result"]
    return [_entry(_spoken(entry, game.domain), game.over) for entry in shown]


def _spoken(entry: Entry, domain: Domain) -> Entry:
    """Words to the user, where a domain of three choices has the agent say them by a call."""
    if entry.kind != "call" or not isinstance(domain, ChoiceDomain):
        return entry
    given = dict(entry.arguments)
    spoken = [FINISH] if (domain.choices or {}).get("action") else ["action", FINISH]
    if entry.failed or given.get("choice") not in spoken:
        return entry
    return replace(entry, kind="say", text=given["content"], arguments=())


def _entry(entry: Entry, over: bool) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "text": entry.text,
        "arguments": [list(pair) for pair in entry.arguments],
        "notes": list(entry.notes) if over else [],
        "failed": entry.failed,
    }


def _user_side(game: Game) -> dict[str, Any]:
    told = brief(game.goal.view)
    return {
        "brief": {"wishes": list(told.wishes), "facts": [list(fact) for fact in told.facts]},
        "change": game.change,
    }


def _agent_side(game: Game) -> dict[str, Any]:
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "writes": tool.writes,
        }
        for tool in game.tools
    ]
    return {"policy": game.domain.policy, "tools": tools}


def _result(game: Game, dealer: Dealer) -> dict[str, Any]:
    trajectory = game.trajectory
    assert trajectory is not None, "a game that is over has a record"
    outcome = trajectory.outcome
    return {
        "success": trajectory.success,
        "ending": ending(trajectory),
        "reward": dealer.reward(trajectory) if trajectory.valid else None,
        "milestones": _milestones(game, trajectory),
        "policy_kept": outcome.policy_kept if outcome else None,
        "turns": len(trajectory.turns),
        "expert_turns": trajectory.expert_turns,
        "task": trajectory.task_id,
        "family": trajectory.family,
    }


def _milestones(game: Game, trajectory: Trajectory) -> list[list[Any]]:
    """Name, weight, and whether it was reached."""
    reached = trajectory.outcome.milestones if trajectory.outcome else ()
    return [[m.name, m.weight, m.name in reached] for m in game.spec.task.milestones]
