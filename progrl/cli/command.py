"""What all commands share: options, exit codes, and how a result reaches a person or a program."""

import contextlib
import functools
import inspect
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from progrl.cli.output import emit, printer, start_logging
from progrl.config import Config, load_config
from progrl.errors import ProgrlError

if TYPE_CHECKING:
    from rich.console import RenderableType

logger = logging.getLogger(__name__)

EXAMPLES: dict[str, tuple[str, ...]] = {}
"""Of every command, by its full name; they stand at the end of its help."""

Params = Annotated[
    Path, typer.Option(help="The complete configuration.", rich_help_panel="Configuration")
]
Profile = Annotated[
    str | None,
    typer.Option(
        help="Laid over it: a name in configs/ or a YAML file.", rich_help_panel="Configuration"
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="A.B=C",
        help="One key, laid over both; again for more.",
        rich_help_panel="Configuration",
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="The result as JSON, alone on standard output."),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Log more.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Log warnings alone, show no progress.")]


@dataclass(frozen=True)
class Shared:
    """The values of the options that stand after any command.

    Attributes:
        params: file of the complete configuration.
        profile: laid over it, by name or path.
        overrides: `a.b=c`, laid over both.
        json: the result goes to a program.
        quiet: no progress is shown.
    """

    params: Path = Path("params.yaml")
    profile: str | None = None
    overrides: tuple[str, ...] = ()
    json: bool = False
    quiet: bool = False

    def config(self) -> Config:
        """The configuration that the options name."""
        return load_config(self.params, self.profile, self.overrides)

    @property
    def project(self) -> Path:
        """The folder that paths in the configuration are relative to."""
        return self.params.parent


@dataclass(frozen=True)
class Result:
    """What a command found.

    Attributes:
        value: for programs, as JSON.
        shown: for people; None where the command has shown it already.
        code: exit code.
    """

    value: Any
    shown: "RenderableType | None" = None
    code: int = 0


Body = Callable[..., Result | None]


def command(
    app: typer.Typer,
    name: str,
    *examples: str,
    panel: str | None = None,
    configured: bool = True,
    json: bool = True,
) -> Callable[[Body], Body]:
    """Make a function whose first parameter is a `Shared` a command of `app`.

    Args:
        examples: what follows `progrl`; the first word or words are the command's own name.
        panel: of the program's help, under which the command is listed.
        configured: the command reads the configuration, so its options are offered.
        json: the command has a result, so `--json` is offered.
    """

    def decorate(body: Body) -> Body:
        @functools.wraps(body)
        def run(**values: Any) -> None:
            verbose, quiet = values.pop("verbose"), values.pop("quiet")
            shared = Shared(
                values.pop("params", Path("params.yaml")),
                values.pop("profile", None),
                tuple(values.pop("overrides", None) or ()),
                values.pop("json", False),
                quiet,
            )
            start_logging(verbose, quiet)
            with explained():
                result = _finish(shared, functools.partial(body, shared, **values))
            if result:
                raise typer.Exit(result)

        run.__signature__ = _signature(body, configured, json)  # type: ignore[attr-defined]
        EXAMPLES[" ".join(filter(None, [app.info.name, name]))] = examples
        app.command(name, epilog=shown_examples(*examples), rich_help_panel=panel)(run)
        return body

    return decorate


def shown_examples(*examples: str) -> str:
    """The end of a help text: command lines, each without the leading `progrl`."""
    return "\n  ".join(["[dim]Examples[/dim]", *(escape(f"progrl {line}") for line in examples)])


def _finish(shared: Shared, body: Callable[[], Result | None]) -> int:
    """Run the body and hand out its result; with `--json` nothing else reaches standard output."""
    if not shared.json:
        result = body()
        if result is not None and result.shown is not None:
            printer().print(result.shown)
    else:
        with contextlib.redirect_stdout(sys.stderr):
            result = body()
        if result is not None:
            emit(result.value)
    return result.code if result is not None else 0


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn what may go wrong into a message on standard error and an exit code.

    What a user can mend: its message alone, 2. Interrupted: one line, 130. A fault of progrl's
    own: logged with its traceback, 1.
    """
    try:
        yield
    except ProgrlError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(130) from None
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception:
        logger.critical(
            "A fault of progrl's own; please report it with what follows", exc_info=True
        )
        raise typer.Exit(1) from None


def _signature(body: Body, configured: bool, json: bool) -> inspect.Signature:
    own = list(inspect.signature(body).parameters.values())[1:]
    offered: list[tuple[str, Any, Any]] = []
    if configured:
        offered += [
            ("params", Params, Path("params.yaml")),
            ("profile", Profile, None),
            ("overrides", Overrides, None),
        ]
    if json:
        offered.append(("json", Json, False))
    offered += [("verbose", Verbose, False), ("quiet", Quiet, False)]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, kind, default in offered
    ]
    return inspect.Signature([*own, *options])
