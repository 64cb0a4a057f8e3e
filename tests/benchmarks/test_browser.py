"""The browser of benchmarks: actions, what may be asked, and that it ends with us."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from progrl.benchmarks.browser import chromium, tab
from progrl.dialogue.messages import ToolCall
from progrl.errors import EnvironmentFault, MalformedAction
from tests.benchmarks.packages import opened

pytestmark = pytest.mark.slow
STARTS = """
import sys
import psutil
from progrl.benchmarks.browser import chromium
chromium()
print(*(child.pid for child in psutil.Process().children(recursive=True)), flush=True)
sys.stdin.read()
"""
PAGE = """<title>Some</title><h1>Some page</h1>
<input aria-label="Name">
<select aria-label="Size"><option>Small</option><option>Large</option></select>
<button onclick="document.querySelector('h1').innerText = document.querySelector('input').value">Go
</button><img src="http://127.0.0.1:9/a.png">"""


COVERED = """<style>button { position: absolute; width: 100px; height: 40px; }</style><h1>None</h1>
<button style="top: 100px; left: 10px" onclick="document.querySelector('h1').innerText = 'Under'">
Under</button><button style="top: 105px; left: 20px">Over</button>"""


def own(url: str) -> bool:
    return url.startswith("file:")


def ref(snapshot: str, name: str) -> str:
    line = next(line for line in snapshot.splitlines() if name in line)
    return line.split("[ref=")[1].split("]")[0]


def test_actions_in_a_page(tmp_path: Path) -> None:
    opened("miniwob")
    (tmp_path / "page.html").write_text(PAGE)
    with tab(own) as some:
        some.do("to open", lambda page: page.goto((tmp_path / "page.html").as_uri()))
        before = some.snapshot()
        assert 'heading "Some page"' in before
        some.act(ToolCall("fill", {"ref": ref(before, "Name"), "text": "Other"}))
        some.act(ToolCall("select_option", {"ref": ref(before, "Size"), "option": "Large"}))
        some.act(ToolCall("press", {"ref": ref(before, "button"), "key": "Enter"}))
        after = some.snapshot()
        assert 'heading "Other"' in after
        assert 'option "Large" [selected]' in after
        for call in (
            ToolCall("click", {"ref": "e999"}),
            ToolCall("click", {"ref": "e1 >> css=body"}),
            ToolCall("select_option", {"ref": ref(before, "Size"), "option": "Huge"}),
            ToolCall("fly", {}),
            ToolCall("click", {}),
        ):
            with pytest.raises(MalformedAction):
                some.act(call)
        assert some.snapshot() == after


def test_an_element_whose_middle_is_covered_is_clicked_where_it_can_be_seen(tmp_path: Path) -> None:
    opened("miniwob")
    (tmp_path / "page.html").write_text(COVERED)
    with tab(own) as some:
        some.do("to open", lambda page: page.goto((tmp_path / "page.html").as_uri()))
        before = some.snapshot()
        some.act(ToolCall("click", {"ref": ref(before, "Over")}))
        assert 'heading "None"' in some.snapshot()
        some.act(ToolCall("click", {"ref": ref(before, "Under")}))
        assert 'heading "Under"' in some.snapshot()


def test_nothing_but_what_is_allowed_is_asked(tmp_path: Path) -> None:
    opened("miniwob")
    (tmp_path / "page.html").write_text(PAGE)
    asked: list[str] = []

    def heard(url: str) -> bool:
        asked.append(url)
        return own(url)

    with tab(heard) as some:
        some.do("to open", lambda page: page.goto((tmp_path / "page.html").as_uri()))
        with pytest.raises(EnvironmentFault, match="ERR_BLOCKED_BY_CLIENT"):
            some.do("to leave", lambda page: page.goto("http://127.0.0.1:9/"))
    assert "http://127.0.0.1:9/a.png" in asked


def test_a_browser_that_died_is_a_fault_and_then_there_is_a_new_one(tmp_path: Path) -> None:
    opened("miniwob")
    (tmp_path / "page.html").write_text(PAGE)
    with tab(own) as some:
        first = chromium()
        children = psutil.Process().children(recursive=True)
        roots = [child for child in children if "--headless" in child.cmdline()]
        next(root for root in roots if "--type" not in " ".join(root.cmdline())).kill()
        with pytest.raises(EnvironmentFault):
            some.do("to open", lambda page: page.goto((tmp_path / "page.html").as_uri()))
    with tab(own) as other:
        assert chromium() is not first
        other.do("to open", lambda page: page.goto((tmp_path / "page.html").as_uri()))
        assert "Some page" in other.snapshot()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None])
def test_the_browser_ends_with_us(number: signal.Signals | None) -> None:
    opened("miniwob")
    with subprocess.Popen(
        [sys.executable, "-c", STARTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        children = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        assert any("chrom" in child.name() for child in children)
        if number is None:
            parent.communicate("")
        else:
            os.kill(parent.pid, number)
        _, left = psutil.wait_procs(children, timeout=20)
    assert [process for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
