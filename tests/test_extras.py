"""The line that installs an extra, as it stands in messages."""

import shlex
import sys
from pathlib import Path

import pytest

from progrl import extras
from progrl.extras import install_line


def test_in_a_checkout_the_line_has_the_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "some where"
    checkout.mkdir()
    for name in ("pyproject.toml", "constraints.txt"):
        (checkout / name).write_text("")
    monkeypatch.setattr(extras, "CHECKOUT", checkout)
    monkeypatch.setattr(sys, "executable", str(checkout / ".venv/bin/python"))
    monkeypatch.chdir(checkout)
    assert (
        install_line("babyai", "llm")
        == ".venv/bin/python -m pip install -c constraints.txt -e '.[babyai,llm]'"
    )
    monkeypatch.chdir(tmp_path)
    words = shlex.split(install_line("babyai"))
    assert words[0] == str(checkout / ".venv/bin/python")
    assert words[-3:] == [str(checkout / "constraints.txt"), "-e", f"{checkout}[babyai]"]


def test_of_a_wheel_the_line_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "CHECKOUT", tmp_path)
    monkeypatch.setattr(sys, "executable", "/opt/python")
    assert install_line("babyai") == "/opt/python -m pip install 'progrl[babyai]'"
