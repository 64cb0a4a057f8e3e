"""`progrl serve`: the page's server as a command, and the games that were saved."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from progrl.dialogue.trajectories import End, Trajectory
from progrl.serving.saved import save, saved
from tests.cli.conftest import Run

TINY = ("--profile", "tiny")


def _game(rating: int) -> Trajectory:
    tags = {"agent": "expert", "person": "user", "rating": rating, "words": "well"}
    return Trajectory("retail-0", "retail", "cancel", 1, 2, "hi", 20, 1, end=End.LEFT, tags=tags)


def test_saved_games_are_listed_and_deleted(run: Run, tmp_path: Path) -> None:
    names = [save(tmp_path, _game(rating)) for rating in (1, 2, 3)]
    (tmp_path / "mine.jsonl").write_text("not a game\n")
    folder = ("--folder", str(tmp_path))
    told = json.loads(run("serve", "saved", *folder, "--json").stdout)
    assert {game["name"]: game["rating"] for game in told} == dict(
        zip(names, (1, 2, 3), strict=True)
    )
    assert {game["person"] for game in told} == {"user"}
    assert names[0] in run("serve", "saved", *folder).stdout
    assert run("serve", "saved", *folder, "--delete", names[0]).exit_code == 0
    assert {path.stem for path in saved(tmp_path)} == set(names[1:])
    done = run("serve", "saved", *folder, "--delete", names[0], "--delete", names[1])
    assert (done.exit_code, names[0] in done.stderr) == (2, True)
    assert run("serve", "saved", *folder, "--delete", "all").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]
    assert json.loads(run("serve", "saved", *folder, "--json").stdout) == []


def test_a_server_that_cannot_be(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("serve", "play", *TINY, "--port", port)
    assert (done.exit_code, f"Port {port} on 127.0.0.1 cannot be had" in done.stderr) == (2, True)
    done = run("serve", "play", *TINY, "--port", "0", "--agent", "nobody")
    assert (done.exit_code, "neither one of" in done.stderr) == (2, True)


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted(root: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "progrl.cli", "serve", "play", *TINY, "--port", "0"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=None,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found
        with urllib.request.urlopen(f"{found[0]}api/offer", timeout=30) as answer:
            offer = json.load(answer)
        assert offer["agents"][-2:] == ["expert", "random"]
        assert {"airline", "retail"} <= {each["name"] for each in offer["environments"]}
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")
    finally:
        process.kill()
        process.wait()
