"""`progrl import`: tasks from other people's data files."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from progrl.cli.command import Result, Shared, command

group = typer.Typer(name="import", help="Make tasks of other people's data.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(group)


@command(group, "userrl", "import userrl data/userrl --output data/imported", configured=False)
def userrl(
    shared: Shared,
    folder: Annotated[Path, typer.Argument(help="With UserRL's data files (*.json).")],
    output: Annotated[Path, typer.Option(help="Folder for a file of tasks a gym.")],
) -> Result:
    """Import UserRL's data: a file of tasks for each gym that plays its records."""
    from progrl.dialogue.tasks import write_tasks
    from progrl.environments.gyms.userrl import import_userrl

    found = import_userrl(folder)
    files = {name: output / f"{name}.jsonl" for name in sorted(found.tasks)}
    for name, file in files.items():
        write_tasks(file, found.tasks[name])
    value = {
        "imported": {name: len(found.tasks[name]) for name in files},
        "files": {name: str(file) for name, file in files.items()},
        "without_gym": dict(sorted(found.unplayed.items())),
        "bad": [asdict(bad) for bad in found.bad],
    }
    table = Table("what", "record", "field", "tasks, or why not", box=None)
    for name, file in files.items():
        table.add_row(str(file), "", "", str(len(found.tasks[name])))
    for name, number in sorted(found.unplayed.items()):
        table.add_row(name, "", "", f"{number} sound records, whose databases the files lack")
    for bad in found.bad:
        table.add_row(bad.file, bad.record, bad.field, bad.reason)
    return Result(value, table, 0 if found.tasks else 2)
