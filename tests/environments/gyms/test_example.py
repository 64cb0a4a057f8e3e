"""The worked example of a gym in docs: one file, built and found from outside the repository."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from progrl.agent.seats import DoNothingAgent, ExpertAgent, RandomAgent
from progrl.dialogue.messages import Message
from progrl.environments.choices import ChoiceDomain
from progrl.environments.contracts import Domain, Environment
from tests.environments.gym import do, episodes, stream

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "meeting"


@pytest.fixture(scope="module")
def meeting() -> Iterator[Domain]:
    """The gym behind three choices, imported from its file."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield ChoiceDomain(importlib.import_module("meeting_gym").Meeting())
    finally:
        sys.path.remove(str(EXAMPLE))
        sys.modules.pop("meeting_gym", None)


def test_the_expert_solves_all_and_guessing_hardly_any(meeting: Domain) -> None:
    tasks = stream(meeting, 100)
    assert len({task.content_hash for task in tasks}) == 100
    played = episodes(meeting, ExpertAgent(), tasks, family="all")
    assert all(t.success and len(t.turns) == t.expert_turns == t.level + 1 for t in played)
    assert not any(t.success for t in episodes(meeting, DoNothingAgent(), tasks))
    assert sum(t.success for t in episodes(meeting, RandomAgent(), tasks)) <= 2


def begun(meeting: Domain) -> tuple[Environment, dict[str, Any]]:
    task = next(t for t in stream(meeting, 5) if t.level == 1)
    environment = meeting.environment()
    environment.reset(task)
    return environment, dict(task.goal)


def test_a_proposal_has_to_name_each_detail_once(meeting: Domain) -> None:
    environment, goal = begun(meeting)
    other = "monday" if goal["day"] != "monday" else "friday"
    right = " ".join(goal.values())
    assert do(environment, "answer", f"{right} {other}").failed
    assert do(environment, "answer", right.replace(goal["day"], other)).observation == "wrong"
    assert not environment.outcome().success
    result = do(environment, "answer", right)
    assert (result.reward, result.done) == (1.0, True)
    assert environment.outcome().success


def test_the_user_tells_what_is_asked_for_and_no_more(meeting: Domain) -> None:
    task = stream(meeting, 5)[4]
    view = meeting.user_view(task)
    hidden = {fact.value for fact in view.facts if not fact.told}
    assert hidden and not any(value in task.query for value in hidden)
    rule: Any = meeting
    told = rule.answer([Message("assistant", "which place do you want ?")], view, Random(1))
    assert task.goal["place"] in told.text
    assert not any(v in told.text for k, v in task.goal.items() if k != "place")


@pytest.mark.slow
def test_it_is_found_by_its_entry_point_once_installed(tmp_path: Path) -> None:
    source, target = tmp_path / "meeting", tmp_path / "installed"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "-t", str(target))
    _python("-m", "pip", "install", *options, str(source))
    paths = [str(target), *filter(None, [os.environ.get("PYTHONPATH")])]
    given = {"PYTHONPATH": os.pathsep.join(paths)}
    listed = json.loads(_python("-m", "progrl.cli", "environments", "--json", **given))
    assert "meeting-gym" in json.dumps(next(d for d in listed if d["name"] == "meeting"))
    line = ("rollout", "--environment", "meeting", "--agent", "expert", "--episodes", "20")
    played = json.loads(_python("-m", "progrl.cli", *line, "--json", **given))
    assert (played["episodes"], played["success"]) == (20, 1.0)


def _python(*arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=EXAMPLE.parents[2],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
