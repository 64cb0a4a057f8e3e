"""From one kind of user to another: agents by the users of training and of evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any

from progrl.evaluation.metrics import Result
from progrl.evaluation.summary import LABEL, Summariser, Summary

Rows = Mapping[str, Sequence[Result]]
"""Results by benchmark."""


def transfer(
    results: Mapping[str, Mapping[str, Rows]],
    parts: Mapping[str, Sequence[str]],
    summarise: Summariser,
) -> dict[str, Any]:
    """The table of training users by evaluation users.

    All agents must have played the same tasks: differences are paired by task.

    Args:
        results: by the users of training, then by those of evaluation.
        parts: benchmarks to sum up together too, by the name of the sum; empty ones are left out.

    Returns:
        `label`, and in `benchmarks` for each benchmark and part: `evaluated_with`, by users, the
        figures of each agent and the first one's success less each other's; `trained_with`, by
        agent, its success with the first users less that with each other's.
    """
    trained = list(results)
    users = list(results[trained[0]])
    first = results[trained[0]][users[0]]
    groups = {name: [name] for name in first} | {n: list(of) for n, of in parts.items() if of}

    def rows(agent: str, user: str, names: Sequence[str]) -> list[Result]:
        return [row for name in names for row in results[agent][user][name]]

    benchmarks: dict[str, Summary] = {}
    for title, names in groups.items():
        with_users = {
            user: summarise.compared({agent: rows(agent, user, names) for agent in trained})
            for user in users
        }
        by_agent = {
            agent: summarise.compared({user: rows(agent, user, names) for user in users})
            for agent in trained
        }
        benchmarks[title] = {
            "evaluated_with": with_users,
            "trained_with": {
                agent: {key: value for key, value in found.items() if key != "agents"}
                for agent, found in by_agent.items()
            },
        }
    return {"label": LABEL, "benchmarks": benchmarks}
