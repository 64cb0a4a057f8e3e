"""Progress and logs: a bar on a terminal, few plain lines elsewhere."""

import io
import logging
import sys

import pytest
from rich.console import Console

from progrl.cli import output


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(output, "time", clock)
    return clock


def test_plain_lines_are_few(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("grpo") as told:
        for tick in range(200):
            clock.now = 100 + tick / 10
            told(tick, 200, "step")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "grpo: 20/200 (10%) after 2 s step"
    assert [line.split()[1] for line in lines] == ["20/200", "70/200", "120/200", "170/200"]


def test_what_is_quick_shows_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("grpo") as told:
        for tick in range(19):
            clock.now = 100 + tick / 10
            told(tick, 19)
    assert capsys.readouterr().err == ""


def test_quiet_shows_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("grpo", quiet=True) as told:
        clock.now = 200.0
        told(1, 2)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_and_whole_log_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=90)
    monkeypatch.setattr(output, "side", lambda: console)
    with output.progress("grpo") as told:
        output.start_logging()
        told(3, 10, "step [3]")
        logging.getLogger("progrl.test").info("a line [of] the log")
    assert "grpo" in screen.getvalue()
    assert "30%" in screen.getvalue()
    assert "step [3]" in screen.getvalue()
    assert "a line [of] the log" in screen.getvalue()
    monkeypatch.undo()
    output.start_logging()


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, ["ours info", "ours warning", "theirs warning"]),
        ({"quiet": True}, ["ours warning", "theirs warning"]),
        (
            {"verbose": True},
            ["ours debug", "ours info", "theirs info", "ours warning", "theirs warning"],
        ),
    ],
)
def test_levels(
    options: dict[str, bool], shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    output.start_logging(**options)
    for level in ("debug", "info", "warning"):
        for name, logger in (("ours", "progrl.x"), ("theirs", "other.x")):
            getattr(logging.getLogger(logger), level)(f"{name} {level}")
    err = capsys.readouterr().err
    assert [line.rpartition(": ")[2] for line in err.splitlines()] == shown
    output.start_logging()


def test_json_has_no_nan_and_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit({"a": [float("inf"), 1.5], "b": "ü", 3: None})
    assert capsys.readouterr().out == (
        '{\n  "a": [\n    null,\n    1.5\n  ],\n  "b": "ü",\n  "3": null\n}\n'
    )
    assert sys.stdout is not None
