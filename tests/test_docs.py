"""The documentation: what it names is there, and what is made from the models is up to date."""

import importlib.util
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from progrl.agent.seats import DoNothingAgent, ExpertAgent
from progrl.cli.app import app
from progrl.config.reference import reference
from progrl.embedding import encoder
from progrl.environments.contracts import Domain
from progrl.rollout import Clock, EpisodeSpec, collect
from progrl.seeds import Seed
from progrl.users.profiles import draw
from progrl.users.replies import build_reply_memory
from progrl.users.scripted import ScriptedUser

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
WRITTEN = {".venv", ".state", ".cache", "data", "models", "metrics", "memory", "evaluation"}
WRITTEN |= {"reports", "runs", "outputs", "dvc.lock", "mlruns"}
"""Made by runs, so not there on a clean checkout."""

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def _prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)


def _code(page: Path) -> Iterator[str]:
    """What stands between backticks, in running text and in blocks for a shell."""
    text = page.read_text()
    yield from re.findall(r"`([^`\n]+)`", _prose(page))
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            yield line.partition("  #")[0].strip()


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name) if name else page
        assert path.exists(), target
        assert not anchor or anchor in _anchors(path), target


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\((?:\./)?([\w-]+\.md)\)", (DOCS / "README.md").read_text()))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {"README.md"}


@pages
def test_make_knows_what_it_is_asked_for(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
    for code in _code(page):
        found = re.fullmatch(r"(?:[A-Z_]+=\S+ )*make((?: \S+)+)", code)
        words = found.group(1).split() if found else []
        for word in words:
            assert "=" in word or word in targets, code


@pages
def test_commands_named_in_the_text_exist(page: Path) -> None:
    known = {command.name for command in app.registered_commands}
    known |= {group.typer_instance.info.name for group in app.registered_groups}
    for code in _code(page):
        found = re.match(r"(?:\.venv/bin/)?progrl ([a-z]\S*)", code)
        assert not found or found.group(1) in known, code
        for profile in re.findall(r"(?:--profile |PROFILE=)([a-z][\w.-]*)(?![\w./-])", code):
            assert profile == "name" or (ROOT / "configs" / f"{profile}.yaml").exists(), code


@pages
def test_files_named_in_the_text_exist(page: Path) -> None:
    for code in _code(page):
        if not re.fullmatch(r"[a-z_.-][\w.-]*(/[a-z_-][\w.-]*)+/?", code):
            continue
        if code.split("/")[0] in WRITTEN or re.search(r"\b[A-Z]+\b", code):
            continue
        assert (ROOT / code).exists() or (page.parent / code).exists(), code


@pages
def test_keys_named_in_the_text_exist(page: Path) -> None:
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    known = set(re.findall(r"^\| `([\w.]+)(?::|`)", reference(), re.M))
    parents = {key.rpartition(".")[0] for key in known}
    for code in _code(page):
        found = re.fullmatch(r"([a-z_]+(?:\.[a-z_]+)+)(?:[:=].*)?", code)
        if found and found.group(1).split(".")[0] in params:
            assert found.group(1) in known | parents or "options" in code, code


def test_the_reference_is_up_to_date() -> None:
    written = (DOCS / "configuration-reference.md").read_text()
    assert written == reference(), "run: progrl config reference > docs/configuration-reference.md"


def test_prefects_deployments_are_of_profiles_that_exist() -> None:
    for deployment in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]:
        assert (ROOT / "configs" / f"{deployment['parameters']['profile']}.yaml").exists()


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "library_domain", DOCS / "examples" / "library" / "library_domain.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_of_a_domain_is_solved_by_its_expert_and_by_nobody_idle() -> None:
    library: Domain = _example().Library()
    tasks = list(islice(library.tasks("test", 1), 40))
    assert tasks == list(islice(library.tasks("test", 1), 40))
    assert len({task.content_hash for task in tasks}) == len(tasks)
    user = ScriptedUser(build_reply_memory(library, encoder("hashed"), 1, 120, 400))
    specs = [
        EpisodeSpec(task, Seed(task.id), task.seed, 20, draw("a", Seed(task.id))) for task in tasks
    ]
    for agent, success in ((ExpertAgent(), True), (DoNothingAgent(), False)):
        clock = Clock()
        played = collect(specs, lambda name: library, agent, lambda name: user, 8, clock)
        assert [t.success for t in played] == [success] * len(tasks)
        if success:
            assert [len(t.turns) for t in played if t.turns[0].act != "clarify"] == [
                task.expert_turns
                for task, t in zip(tasks, played, strict=True)
                if t.turns[0].act != "clarify"
            ]
