import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from progrl.config import load_config
from progrl.errors import DataError
from progrl.files import file_digest, write_json
from progrl.reporting.material import StageTime
from progrl.reporting.page import duration, render
from progrl.reporting.sources import gather, stage_times
from progrl.stages import Context, find_stage

from .run import HOSTILE, write_run

VOID = {"meta", "link", "br", "img", "hr"}


@pytest.fixture(scope="module")
def config(request):
    return load_config(request.config.rootpath / "params.yaml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, config):
    root = tmp_path_factory.mktemp("run")
    write_run(root, config)
    return root


@pytest.fixture(scope="module")
def material(folder, config):
    return gather(folder, folder, config)


class Page(HTMLParser):
    """Collects elements; fails where one is closed that is not the last opened."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.found = [], []
        self.feed(text)
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def test_the_page_is_well_formed_and_needs_nothing_else(material):
    text = render(material)
    page = Page(text)
    assert not page.all("script") and not page.all("img") and not page.all("iframe")
    assert [link["href"] for link in page.all("link")] == ["data:,"]
    assert all(a["href"].startswith("#") for a in page.all("a"))
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert {a["href"][1:] for a in page.all("a")} <= set(ids) and len(ids) == len(set(ids))
    assert not re.search(r"https?://|url\(|@import", text)


def test_the_page_can_be_heard(material):
    page = Page(render(material))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("svg")) == 20
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in page.all("svg"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(th["scope"] in ("row", "col") for th in page.all("th"))


def test_words_of_agents_and_users_are_escaped(material):
    text = render(material)
    assert HOSTILE not in text
    assert text.count("&lt;script&gt;alert(&#39;&amp;&#39;)") >= 12


def test_the_page_is_a_function_of_its_material(material):
    assert render(material) == render(material)


def test_results_are_on_the_page(material):
    text = render(material)
    # 8 of 10 tasks, the last one of ten cut by the horizon; SFT has 4.
    assert "<b>0.80</b>" in text and "<b>0.40</b>" in text
    assert re.search(r"GRPO − SFT.*?\+0\.400 \[.*?better", text, re.DOTALL)
    assert "never trained on" in text and "one seed; interval over tasks" in text
    assert text.count("gained") >= 2 and "solved by both" in text
    assert "The horizon adapted" in text


def test_interaction_tools_and_training_have_their_tables(material):
    text = render(material)
    for row in ("user satisfaction", "context coherence", "learning efficiency", "stability"):
        assert row in text
    assert "tool efficiency where GRPO and SFT both succeed" in text
    assert "retention of success" in text


def test_an_evaluation_of_an_older_version_is_shown_without_them(material):
    tree = json.loads(json.dumps(material.evaluate))
    del tree["retention"]
    for benchmark in tree["benchmarks"].values():
        del benchmark["tool_efficiency"]
        for figures in benchmark["agents"].values():
            del figures["satisfaction"]
    text = render(replace(material, evaluate=tree)).partition('id="levels"')[0]
    assert "user satisfaction" not in text and "context coherence" in text


def test_what_is_missing_is_said(material):
    empty = replace(material, grpo=[], sft=[], examples={}, times=())
    text = render(empty)
    Page(text)
    assert text.count("There is no data for this figure.") == 14
    assert text.count("No dialogue of both agents was kept.") == 2
    assert "No timings were found" in text and "undefined" in text


def test_merged_seeds_can_be_shown_too(material):
    tree = json.loads(json.dumps(material.evaluate))
    del tree["seed"]
    text = render(replace(material, evaluate={**tree, "label": "over seeds", "seeds": [1, 2, 3]}))
    assert "1, 2, 3" in text


def test_times_by_stage(material):
    times = [StageTime("sft", 95.0, {}), StageTime("grpo", 285.0, {"policy_update": 61.0})]
    text = render(replace(material, times=times))
    assert "6 min 20 s in all" in text and "policy update 1 min 01 s" in text
    assert "width:75.0%" in text and "not measured" in text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.44, "0.4 s"),
        (42.3, "42 s"),
        (59.7, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown


def test_times_are_those_of_the_run_that_made_the_outputs(tmp_path):
    write_json(tmp_path / "out.json", 1)
    outputs = {"out.json": file_digest(tmp_path / "out.json")}
    runs = tmp_path / "runs" / "sft"
    assert stage_times(tmp_path, ["sft"]) == []
    write_json(runs / "b" / "done.json", {"seconds": 9.0, "outputs": {"out.json": "another"}})
    assert stage_times(tmp_path, ["sft"]) == []
    write_json(runs / "a" / "done.json", {"seconds": 20.0, "outputs": outputs})
    assert stage_times(tmp_path, ["sft", "grpo"]) == [StageTime("sft", 20.0, {})]
    # The attempt that ended took 20 s; with those that were interrupted it was 50 s.
    write_json(runs / "a" / "timings.json", {"user": 5.0, "update": 9.0, "total": 50.0})
    expected = StageTime("sft", 50.0, {"update": 9.0, "user": 5.0})
    assert stage_times(tmp_path, ["sft"]) == [expected]


def test_broken_inputs_name_file_and_line(tmp_path, config):
    write_run(tmp_path, config)
    rows = tmp_path / "metrics" / "grpo.jsonl"
    rows.write_text(rows.read_text() + '{"steps": 1}\n')
    with pytest.raises(DataError, match=r"grpo\.jsonl, line 5"):
        gather(tmp_path, tmp_path, config)
    write_json(tmp_path / "metrics" / "evaluate.json", [])
    with pytest.raises(DataError, match=r"evaluate\.json"):
        gather(tmp_path, tmp_path, config)


def test_the_stage_writes_the_page(folder, config, tmp_path):
    stage = find_stage("report")
    metrics = stage.run(Context(config, folder, folder, tmp_path))
    page = folder / stage.outputs[0]
    assert metrics == {"report/bytes": float(page.stat().st_size)}
    before = page.read_bytes()
    stage.run(Context(config, folder, folder, tmp_path))
    assert page.read_bytes() == before
