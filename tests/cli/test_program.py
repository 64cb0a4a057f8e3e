"""The program as a whole: help, examples, exit codes, what goes where."""

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from progrl.cli.app import app
from progrl.cli.command import EXAMPLES, Shared, command, explained
from progrl.errors import DataError
from tests.cli.conftest import Run, Start

HEAVY = ("torch", "mlflow", "transformers", "sentence_transformers", "prefect", "dvc", "faiss")


def commands() -> list[str]:
    """Full names of all commands, as typer built them."""

    def walk(group: Any, prefix: str) -> list[str]:
        names = []
        for name, inner in group.commands.items():
            full = f"{prefix} {name}".strip()
            names += walk(inner, full) if hasattr(inner, "commands") else [full]
        return names

    return sorted(walk(typer.main.get_command(app), ""))


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_and_an_example_of_its_own(name: str, run: Run) -> None:
    done = run(*name.split(), "--help")
    assert done.exit_code == 0
    assert EXAMPLES[name]
    for example in EXAMPLES[name]:
        assert example.startswith(name)
        assert " ".join(f"progrl {example}".split()) in " ".join(done.output.split())


@pytest.mark.parametrize("example", sorted(e for group in EXAMPLES.values() for e in group))
def test_every_example_is_accepted(example: str) -> None:
    context: Any = None
    group: Any = typer.main.get_command(app)
    args = shlex.split(example)
    while hasattr(group, "commands"):
        context = group.make_context("progrl", args, parent=context)
        name, group, args = group.resolve_command(context, context._protected_args + context.args)
    parsed = group.make_context(name, list(args), parent=context)
    assert parsed.params.get("overrides") is None or all(
        "=" in o for o in parsed.params["overrides"]
    )


def test_all_that_the_docs_promise_is_there() -> None:
    promised = {"run", "stage", "generate", "sft", "grpo", "evaluate", "report", "register"}
    promised |= {"rollout", "play", "view", "environments", "doctor", "models fetch"}
    promised |= {"config check", "config show"}
    assert promised <= set(commands())


def _children() -> float:
    """Processor seconds of all ended children: what a busy machine does not stretch."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("args", [["--help"], ["grpo", "--help"], ["config", "check"]])
def test_light_commands_are_quick_and_import_nothing_heavy(args: list[str], root: Path) -> None:
    code = (
        "import sys; sys.argv[1:] = sys.argv[2:]\n"
        "from progrl.cli import main\n"
        "try:\n    main()\nfinally:\n"
        f"    print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    times = []
    for _ in range(2):
        start = _children()
        done = subprocess.run(
            [sys.executable, "-c", code, "-", *args], cwd=root, capture_output=True, text=True
        )
        times.append(_children() - start)
        assert done.returncode == 0, done.stderr
        assert "HEAVY []" in done.stderr
    assert min(times) < 2.0


def test_no_arguments_show_help(start: Start) -> None:
    done = start()
    assert "Usage: progrl" in done.stdout + done.stderr


def test_version(start: Start) -> None:
    assert start("--version").stdout == "progrl 0.1.0\n"


def test_a_wrong_command_suggests_the_right_one(start: Start) -> None:
    done = start("evalute")
    assert done.returncode == 2
    assert "evaluate" in done.stderr


@pytest.mark.parametrize("flag", ["--show-completion"])
def test_completion_for_bash(flag: str, root: Path) -> None:
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from progrl.cli import main; main()", flag, "bash"],
        cwd=root,
        capture_output=True,
        text=True,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    assert "_PROGRL_COMPLETE=complete_bash" in done.stdout
    checked = subprocess.run(["bash", "-n"], input=done.stdout, text=True)
    assert checked.returncode == 0


def test_completion_completes(root: Path) -> None:
    env = {
        **os.environ,
        "_PROGRL_COMPLETE": "complete_bash",
        "COMP_WORDS": "progrl con",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from progrl.cli import main; main()"],
        cwd=root,
        capture_output=True,
        text=True,
        env=env,
    )
    assert done.stdout.split() == ["config"]


def test_what_a_user_can_mend_is_a_message_alone(start: Start, tmp_path: Path) -> None:
    done = start("view", str(tmp_path / "none.jsonl"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().startswith(f"{tmp_path}/none.jsonl: no such file")
    assert "Traceback" not in done.stderr


def test_json_stays_empty_on_an_error(start: Start) -> None:
    done = start("config", "show", "nothing", "--json")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (DataError("x.json: broken"), 2, "x.json: broken"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (ZeroDivisionError("ours"), 1, "Traceback"),
    ],
)
def test_exit_codes(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, explained():
        raise error
    assert caught.value.exit_code == code
    if code != 1:
        assert words in capsys.readouterr().err


def test_a_fault_of_ours_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(typer.Exit), explained():
        raise ZeroDivisionError("ours")
    assert "progrl's own" in caplog.text
    assert "ZeroDivisionError: ours" in caplog.text


def test_json_is_alone_whatever_else_prints(capsys: pytest.CaptureFixture[str]) -> None:
    from typer.testing import CliRunner

    from progrl.cli.command import Result

    noisy = typer.Typer()

    def body(shared: Shared) -> Result:
        """Print."""
        sys.stdout.write("a library's chatter\n")
        return Result({"x": float("nan"), "path": Path("a")}, "shown")

    command(noisy, "noisy", "noisy")(body)
    command(noisy, "other", "other")(body)
    try:
        done = CliRunner().invoke(noisy, ["noisy", "--json"])
    finally:
        del EXAMPLES["noisy"], EXAMPLES["other"]
    assert json.loads(done.stdout) == {"x": None, "path": "a"}
    assert "chatter" in done.stderr


WAITS = """
import asyncio, time, typer
from progrl.cli import app as program
from progrl.cli.command import command
async def busy():
    while True:
        await asyncio.sleep(0)
async def loop():
    task = asyncio.create_task(busy())
    print("ready", flush=True)
    await asyncio.sleep(60)
def body(shared):
    '''Wait.'''
    try:
        {}
    finally:
        print("tidied", flush=True)
command(program.app, "wait", "wait")(body)
program.main()
"""


def ended(script: str, number: signal.Signals, root: Path) -> tuple[int, str, str]:
    """Code, output and errors of a script that is sent a signal once it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, "wait"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@pytest.mark.parametrize(
    "wait", ["print('ready', flush=True); time.sleep(60)", "asyncio.run(loop())"]
)
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "Interrupted.\n"), (signal.SIGTERM, 143, "Terminated.\n")],
)
def test_signals_end_it_tidily(
    wait: str, number: signal.Signals, code: int, said: str, root: Path
) -> None:
    assert ended(WAITS.format(wait), number, root) == (code, "tidied\n", said)


def test_a_blocked_event_loop_is_not_waited_for(root: Path) -> None:
    script = WAITS.format("asyncio.run(loop())").replace(
        "await asyncio.sleep(60)", "time.sleep(60)"
    )
    script = script.replace("program.main()", "program.GRACE = 0.1; program.main()")
    code, out, err = ended(script, signal.SIGTERM, root)
    assert (code, out) == (143, "tidied\n")
    assert err.endswith("Terminated.\n")


def test_a_reader_that_has_gone_is_no_error(root: Path) -> None:
    line = f"{shlex.quote(sys.executable)} -m progrl.cli config show | head -1"
    done = subprocess.run(["bash", "-c", line], cwd=root, capture_output=True, text=True)
    assert done.stdout == "seed: 1\n"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "Interrupted."), (signal.SIGTERM, 143, "Terminated.")],
)
def test_signals_end_a_game_that_waits_for_a_person(
    number: signal.Signals, code: int, said: str, root: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "progrl.cli", "play", "function"],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    while b"you:" not in process.stdout.read1():
        pass
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err.decode().strip().splitlines()[-1]) == (code, said)
