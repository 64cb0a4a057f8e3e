"""What a stranger expects of a repository."""

import ast
import hashlib
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import progrl
from progrl.cli.app import app

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path for top in ("progrl", "flows", "tasks", "speed") for path in (ROOT / top).rglob("*.py")
)
PYTHON = sorted([*SOURCES, *(ROOT / "tests").rglob("*.py")])
LIBRARY = sorted((ROOT / "progrl").rglob("*.py"))
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
UNSAFE = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"torch.load", "torch.save", "np.load", "numpy.load", "yaml.load"}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _nodes(path: Path) -> Iterator[ast.AST]:
    yield from ast.walk(ast.parse(path.read_text()))


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def _texts() -> Iterator[tuple[str, str]]:
    for path in _tracked():
        try:
            yield _name(path), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_files_and_functions_fit_a_reader() -> None:
    long_files = [_name(p) for p in PYTHON if len(p.read_text().splitlines()) > 400]
    long_functions = [
        f"{_name(path)}: {node.name}"
        for path in PYTHON
        for node in _nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > 60
    ]
    assert long_files == []
    assert long_functions == []


def test_the_library_prints_nothing_and_leaves_nothing_undone() -> None:
    found = []
    for path in LIBRARY:
        for node in _nodes(path):
            if isinstance(node, ast.Name) and node.id in {"print", "NotImplementedError"}:
                found.append(f"{_name(path)}:{node.lineno}: {node.id}")
        if re.search(r"\b(TODO|FIXME|XXX)\b", path.read_text()):
            found.append(f"{_name(path)}: left undone")
    assert found == []


def test_nothing_that_runs_code_when_read() -> None:
    found = []
    for path in SOURCES:
        for node in _nodes(path):
            names = set()
            if isinstance(node, ast.Import):
                names = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {node.module.partition(".")[0]}
            elif isinstance(node, ast.Call):
                names = {ast.unparse(node.func)} & (UNSAFE_CALLS | {"eval", "exec"})
                found += [f"{_name(path)}:{node.lineno}: {name}" for name in names]
            found += [f"{_name(path)}: {name}" for name in names & UNSAFE]
    assert found == []


def test_nothing_depends_on_the_hash_of_a_string() -> None:
    found = [
        f"{_name(path)}:{node.lineno}"
        for path in LIBRARY
        for node in _nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hash"
    ]
    assert found == []


def test_what_one_system_alone_has_is_asked_for_first() -> None:
    special = re.compile(r"prctl|sched_getaffinity|[\"']/proc/|os\.posix_fadvise|libc\.so")
    cares = re.compile(r"sys\.platform|platform\.system|hasattr\(os")
    texts = {_name(path): path.read_text() for path in SOURCES}
    assert [n for n, text in texts.items() if special.search(text) and not cares.search(text)] == []


def test_every_package_says_what_it_is() -> None:
    silent = [
        _name(path)
        for path in LIBRARY
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_the_licence_is_apache_2_unchanged() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2
    assert "Apache License" in (ROOT / "NOTICE").read_text()


def test_the_changelog_tells_of_this_version() -> None:
    assert re.search(rf"^## .*\b{re.escape(progrl.__version__)}\b", _read("CHANGELOG.md"), re.M)


def test_the_metadata() -> None:
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    assert project["requires-python"] == ">=3.11,<3.15"
    assert project["license"] == "Apache-2.0"
    assert project["scripts"] == {"progrl": "progrl.cli:main"}
    assert (ROOT / "progrl" / "py.typed").exists()


def _read(name: str) -> str:
    return (ROOT / name).read_text()


def _commands(text: str) -> list[str]:
    """Lines of fenced blocks, without prompts and comments."""
    blocks = re.findall(r"^```(?:\w*)\n(.*?)^```", text, re.M | re.S)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines if line and line[0] != "#"]


def test_what_the_readme_says_to_make_can_be_made() -> None:
    asked = {
        word
        for line in _commands(_read("README.md"))
        if line.startswith("make ")
        for word in line.split()[1:]
        if "=" not in word
    }
    assert {"run", "test"} <= asked
    targets = set(re.findall(r"^([a-z][a-z-]*):", _read("Makefile"), re.M))
    assert asked <= targets
    promised = {"setup", "run", "test", "test-fast", "lint", "serve", "stop", "pins", "clean"}
    assert promised <= targets


def test_what_the_docs_say_to_run_is_accepted() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    lines = [line for page in pages for line in _commands(page.read_text())]
    asked = [line for line in lines if re.match(r"(\.venv/bin/)?progrl ", line)]
    assert asked
    for line in asked:
        args = shlex.split(line)[1:]
        context, group = None, typer.main.get_command(app)
        while hasattr(group, "commands"):
            context = group.make_context("progrl", args, parent=context)
            name, group, args = group.resolve_command(  # type: ignore[attr-defined]
                context, context._protected_args + context.args
            )
        group.make_context(name, list(args), parent=context)


def test_no_paths_of_a_machine_and_no_registry() -> None:
    path = re.compile(r"(?<![\w.])/(work|root|home/\w+|Users/\w+)/")
    host = re.compile(r"(--|\b)(extra-)?index-url\b|download\.pytorch\.org|pypi\.org/simple")
    own = _name(Path(__file__))
    found = [
        f"{name}: {match.group()}"
        for name, text in _texts()
        if name != own
        for pattern in (path, host)
        for match in [pattern.search(text)]
        if match
    ]
    assert found == []


def test_no_secrets() -> None:
    secret = re.compile(
        r"\b(hf_[A-Za-z0-9]{30,}|sk-[A-Za-z0-9_-]{30,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16})\b"
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    )
    own = _name(Path(__file__))
    found = [name for name, text in _texts() if name != own and secret.search(text)]
    assert found == []


@pytest.mark.slow
def test_the_wheel_holds_progrl_alone(tmp_path: Path) -> None:
    copy = tmp_path / "source"
    for path in _tracked():
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", str(tmp_path), str(copy)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"progrl-{progrl.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        tops = {name.partition("/")[0] for name in names}
        about = f"progrl-{progrl.__version__}.dist-info"
        assert tops == {"progrl", about}
        assert {f"{about}/licenses/LICENSE", f"{about}/licenses/NOTICE"} <= set(names)
        tracked = {_name(p) for p in _tracked() if _name(p).startswith("progrl/")}
        assert {name for name in names if name.startswith("progrl/")} == tracked
        points = archive.read(f"{about}/entry_points.txt").decode()
        assert "progrl = progrl.cli:main" in points
        archive.extractall(tmp_path / "site")
    code = "import progrl.cli, sys; sys.argv = ['progrl', '--version']; progrl.cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"progrl {progrl.__version__}\n", done.stderr
