"""A stage in two processes: the same training, the same bytes after a kill, one message."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from progrl.config import load_config
from progrl.errors import ProcessFault
from progrl.stages import processes
from progrl.stages.base import Context
from tests.stages.conftest import finish, start
from tests.stages.test_kill import AHEAD, Copy, assert_same, reached, rows

pytestmark = pytest.mark.slow
TWO = "processes=2"
GRPO = ("models/grpo", "memory", "metrics/grpo.jsonl")
INPUTS = ("data", "models/untrained", "models/sft")


def followers(leader: int) -> list[psutil.Process]:
    """The processes that share the stage of process `leader`."""
    children = psutil.Process(leader).children(recursive=True)
    return [p for p in children if "progrl.stages.processes" in p.cmdline()]


def listening(process: psutil.Process | subprocess.Popen[bytes]) -> set[str]:
    """The addresses that others could reach a process at."""
    found = psutil.Process(process.pid).net_connections("inet")
    return {c.laddr.ip for c in found if c.status == psutil.CONN_LISTEN}


def close(one: list[dict[str, Any]], other: list[dict[str, Any]], *names: str) -> None:
    for a, b in zip(one, other, strict=True):
        for name in names:
            expected = None if b[name] is None else pytest.approx(b[name], rel=1e-3, abs=1e-5)
            assert a[name] == expected, (a["step"], name)


def test_two_processes_train_as_one_does(copy: Copy, tmp_path: Path) -> None:
    one, two = copy("one", "data"), copy("two", "data")
    few = "sft.steps=20"  # later on, rounding has grown
    finish("sft", one, tmp_path / "one.log", few)
    finish("sft", two, tmp_path / "two.log", few, TWO)
    close(rows(one, "sft"), rows(two, "sft"), "loss", "gradient_norm")
    # From one and the same model on: until the first update the episodes are the same too.
    one, two = (copy(name, *INPUTS) for name in ("one-grpo", "two-grpo"))
    short = ("grpo.steps=3", "grpo.probe_every=3")
    finish("grpo", one, tmp_path / "one.log", *short)
    finish("grpo", two, tmp_path / "two.log", TWO, *short)
    names = ("reward", "score_std", "entropy", "loss", "tokens_sampled", "probe")
    moved = [row for row in rows(one, "grpo") if row.get("gradient_norm")]
    until = moved[0]["step"] + 1
    close(rows(one, "grpo")[1:until], rows(two, "grpo")[1:until], *names, "gradient_norm")


@pytest.mark.parametrize("more", [(), AHEAD], ids=["plain", "ahead"])
def test_killed_in_two_processes_it_ends_the_same_and_leaves_no_process(
    more: tuple[str, ...], copy: Copy, tmp_path: Path
) -> None:
    left, killed = copy("left", *INPUTS), copy("killed", *INPUTS)
    finish("grpo", left, tmp_path / "left.log", TWO, *more)
    process = start("grpo", killed, tmp_path / "killed.log", TWO, *more)
    while not reached("grpo", 2, killed):
        assert process.poll() is None, (tmp_path / "killed.log").read_text()
        time.sleep(0.01)
    (follower,) = followers(process.pid)
    assert listening(process) | listening(follower) == {"127.0.0.1"}
    process.kill()
    process.wait()
    follower.wait(20)
    assert "resuming" in finish("grpo", killed, tmp_path / "again.log", TWO, *more)
    assert_same(left, killed, *GRPO)


def test_where_one_process_dies_the_stage_says_so_and_goes_on_when_run_again(
    copy: Copy, tmp_path: Path
) -> None:
    root, log = copy("root", *INPUTS), tmp_path / "log"
    process = start("grpo", root, log, TWO)
    while not reached("grpo", 1, root):
        assert process.poll() is None, log.read_text()
        time.sleep(0.01)
    (follower,) = followers(process.pid)
    os.kill(follower.pid, signal.SIGKILL)
    assert process.wait(60) == 2
    said = log.read_text()
    assert "Process 2 of 2 ended with code -9" in said and "Traceback" not in said
    assert not (root / "models/grpo").exists()
    assert "resuming" in finish("grpo", root, log, TWO)


def test_a_process_that_does_not_end_is_stopped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    config = load_config(profile="tiny", overrides=[TWO])
    context = Context(config, tmp_path, tmp_path, tmp_path)
    # What it is to meet the leading process at never comes to be: it waits and waits.
    crew = processes._crew("sft", context, tmp_path / "meeting")
    said = r"Process 2 of 2 had not ended 0.1 seconds after .*process-1\.log.*Run the stage"
    with pytest.raises(ProcessFault, match=said), crew as others:
        pass
    assert others[0].poll() is not None


def test_evaluation_is_the_same_in_two_processes(copy: Copy, tmp_path: Path) -> None:
    one = copy("one", "data", "models")
    finish("grpo", one, tmp_path / "grpo.log", "grpo.steps=3")
    two = shutil.copytree(one, tmp_path / "two")
    finish("evaluate", one, tmp_path / "one.log")
    finish("evaluate", two, tmp_path / "two.log", TWO)
    found = [json.loads((root / "metrics/evaluate.json").read_text()) for root in (one, two)]
    assert found[0] == found[1]
