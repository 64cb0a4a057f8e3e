"""`progrl doctor`: what is installed and running, what is wrong, and how to mend it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from progrl.cli import checks
from progrl.cli.checks import Finding
from progrl.cli.command import Result, Shared, command
from progrl.config import Config
from progrl.errors import ConfigurationError

STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "doctor", "doctor", "doctor --mend")(doctor)


def doctor(
    shared: Shared,
    mend: Annotated[bool, typer.Option("--mend", help="Mend what can be mended safely.")] = False,
) -> Result:
    """Look for what is wrong with the installation, servers, runs and processes.

    Exit code 0 where all is well, 1 where something is not.
    """
    findings = list(examine(shared))
    if mend:
        findings = [_mended(finding) for finding in findings]
    problems = sum(finding.state == "problem" for finding in findings)
    value = {
        "ok": not problems,
        "findings": [
            {"check": f.check, "state": f.state, "found": f.found, "mend": f.mend} for f in findings
        ],
    }
    return Result(value, _table(findings), 1 if problems else 0)


def examine(shared: Shared) -> Iterator[Finding]:
    """All findings, in the order of the checks."""
    project = shared.project
    yield from checks.python_and_packages()
    yield from checks.programs()
    yield from checks.disk(project)
    yield from checks.servers(project)
    yield from checks.orphans(project)
    yield from checks.dvc_locks(project)
    yield from checks.dvc_settings(project)
    try:
        config = shared.config()
    except ConfigurationError as error:
        yield Finding("configuration", "problem", str(error), "Mend what it names.")
        return
    yield from _configured(config, shared)


def _configured(config: Config, shared: Shared) -> Iterator[Finding]:
    yield Finding("configuration", "ok", str(shared.params))
    yield from checks.models(config, shared.project)
    if config.tracking.kind != "none":
        yield from checks.zombies(config, shared.project)


def _mended(finding: Finding) -> Finding:
    if finding.state != "problem" or finding.safe is None:
        return finding
    try:
        finding.safe()
    except Exception as error:
        return replace(finding, found=f"{finding.found}; mending failed: {error}")
    return replace(finding, state="ok", found=f"mended: {finding.found}", mend="", safe=None)


def _table(findings: list[Finding]) -> Table:
    table = Table("", "check", box=None)
    for name in ("found", "mend"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        state = Text(finding.state, STYLES[finding.state])
        table.add_row(state, finding.check, finding.found, finding.mend)
    return table
