"""`progrl environments`: the domains, ours and those that other packages add."""

from importlib.metadata import entry_points
from typing import Any

import typer
from rich.table import Table

from progrl.cli.command import Result, Shared, command
from progrl.cli.episodes import PANEL, SPLITS, domain_of
from progrl.environments.choices import ChoiceDomain, offered
from progrl.environments.registry import GROUP, domains
from progrl.errors import ConfigurationError


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "environments", "environments", "environments --json", panel=PANEL)(environments)


def environments(shared: Shared) -> Result:
    """List the domains: tools, families of tasks, users, how many tasks."""
    config = shared.config()
    found = []
    for name in domains():
        use = "train" if name in config.domains.train else ""
        use = "held out" if name in config.domains.held_out else use
        try:
            found.append({"name": name, "use": use, **_described(domain_of(config, name))})
        except ConfigurationError as error:
            found.append({"name": name, "use": use, "problem": str(error)})
    return Result(found, _table(found))


def _described(domain: Any) -> dict[str, Any]:
    """What a domain says of itself; what a contract does not ask for may be missing (null)."""
    families = getattr(domain, "families", None)
    count = getattr(domain, "task_count", None)
    behind = domain.inner if isinstance(domain, ChoiceDomain) else domain
    return {
        "description": domain.description,
        "origin": _origin(domain.name, behind),
        "choices": offered(domain.choices) if isinstance(domain, ChoiceDomain) else None,
        "tools": [tool.name for tool in domain.tools],
        "writes": [tool.name for tool in domain.tools if tool.writes],
        "users": ["scripted", "llm", "human"],
        "families": [{"name": n, "level": level} for n, level in families()] if families else None,
        "tasks": {split: count(split) if count else None for split in SPLITS},
    }


def _origin(name: str, domain: Any) -> str:
    """`progrl`, the distribution whose entry point it is, or `imported` where its tasks are."""
    if getattr(getattr(domain, "options", None), "imported", None) is not None:
        return "imported"
    module = type(domain).__module__
    if module.partition(".")[0] == "progrl":
        return "progrl"
    points = entry_points(group=GROUP, name=name)
    return next((point.dist.name for point in points if point.dist), module)


def _table(found: list[dict[str, Any]]) -> Table:
    table = Table("domain", "use", "origin", "tools", "families", "levels", "tasks", box=None)
    for entry in found:
        if "problem" in entry:
            table.add_row(entry["name"], entry["use"], entry["problem"])
            continue
        families = entry["families"] or []
        levels = sorted({family["level"] for family in families})
        counts = {"unlimited" if n is None else str(n) for n in entry["tasks"].values()}
        table.add_row(
            entry["name"],
            entry["use"],
            entry["origin"],
            str(len(entry["tools"])),
            str(len(families)) if families else "-",
            f"{levels[0]}-{levels[-1]}" if levels else "-",
            ", ".join(sorted(counts)),
        )
    return table
