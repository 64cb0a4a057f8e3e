"""What a benchmark says of itself, and what its adapter brings beyond a domain."""

import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from progrl.benchmarks.isolated import importable
from progrl.dialogue.tasks import Task
from progrl.environments.contracts import Answering
from progrl.errors import ConfigurationError, NotInstalled

Status = Literal["installed", "missing", "needs server", "not available"]


PROGRAMS = {
    "java": ("java",),
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
}
"""Programs that benchmarks need, with the names that they go by."""


def program(name: str) -> str | None:
    """The path of a program, by one of its `PROGRAMS` names; None where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS[name])), None)


class Adapter(Answering, Protocol):
    """A benchmark as a domain; its expert plays the gold trajectories.

    `tasks` gives the benchmark's own tasks in a fixed order: a benchmark that is there to measure
    gives the same ones for every split and seed, and ends.
    """

    def turns(self, task: Task) -> int:
        """Most agent turns of an episode of `task`."""
        ...


@dataclass(frozen=True)
class Benchmark:
    """One benchmark, whether it can run here or not.

    Attributes:
        name: as commands take it.
        title: for people.
        licence: of the package and of the tasks in it.
        adapter: makes the adapter; None where there is none.
        modules: that must be importable.
        install: the line that brings what is missing.
        programs: of `PROGRAMS` that must be found.
        isolated: requirements that are installed without their dependencies, in a folder of their
            own, because these would change versions of ours.
        folder: of the isolated packages, where several benchmarks share one; else its own.
        checkout: environment variable that names the folder of the benchmark's own source, which
            then holds `modules`.
        server: what must run elsewhere.
        why: why there is no adapter, or what is to be known about it, in a line.
        references: makes the adapter that the gold is played in, where that is not `adapter`: it
            needs no server, and tests less.
        tests: what it tests, in a line.
    """

    name: str
    title: str
    licence: str
    adapter: Callable[[], Adapter] | None = None
    modules: tuple[str, ...] = ()
    install: str = ""
    programs: tuple[str, ...] = ()
    isolated: tuple[str, ...] = ()
    folder: str = ""
    checkout: str = ""
    server: str = ""
    why: str = ""
    references: Callable[[], Adapter] | None = None
    tests: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """The modules and programs that are not here; nothing is imported to find out."""
        if self.checkout:
            return () if self._checked_out() else (f"a checkout, named by {self.checkout}",)
        return tuple(
            name
            for name in (*self.modules, *self.programs)
            if (program(name) if name in PROGRAMS else importlib.util.find_spec(name)) is None
            and not (self.isolated and importable(self.place, name))
        )

    @property
    def place(self) -> str:
        """The name of the folder that its isolated packages live in."""
        return self.folder or self.name

    def _checked_out(self) -> bool:
        folder = Path(os.environ.get(self.checkout, ""))
        return folder != Path() and all((folder / name).is_dir() for name in self.modules)

    @property
    def status(self) -> Status:
        """Whether it can run here."""
        if self.server:
            return "needs server"
        if self.adapter is None:
            return "not available"
        return "missing" if self.missing else "installed"

    def open(self) -> Adapter:
        """The adapter.

        Raises:
            ConfigurationError: it cannot run here; the message says why, or has the line that
                installs what is missing.
        """
        return self._made(self.adapter)

    def open_gold(self) -> Adapter:
        """The adapter that the gold is played in.

        Raises:
            ConfigurationError: as `open` does.
        """
        return self._made(self.references or self.adapter)

    def _made(self, make: Callable[[], Adapter] | None) -> Adapter:
        if make is None:
            raise ConfigurationError(f"The benchmark {self.name} cannot run here: {self.why}")
        self.check()
        return make()

    def check(self) -> None:
        """Nothing, where all that it needs is installed.

        Raises:
            NotInstalled: something is missing; the message has the line that installs it.
        """
        if self.missing:
            raise NotInstalled(
                f"The benchmark {self.name} needs {', '.join(self.missing)}: {self.install}"
            )
