"""The model registry over a real local store."""

from pathlib import Path

import pytest

from progrl.config.models import MlflowTracking
from progrl.errors import TrackingError
from progrl.files import write_json, write_text
from progrl.tracking.registry import CHAMPION, Registry

TRACKING = MlflowTracking(kind="mlflow", experiment="trial", model="agent")


def test_what_a_version_was_measured_by_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    registry = Registry.open(tmp_path, TRACKING)
    assert registry.named(CHAMPION) is registry.find("content") is None
    client = registry.store.client
    run = client.create_run(registry.store.experiment).info.run_id
    write_json(tmp_path / "model" / "evaluation" / "results.json", {"rows": [1, 2]})
    write_text(tmp_path / "model" / "README.md", "a card")

    added = registry.add(run, "content", [tmp_path / "model"], {"kept": "yes"})
    registry.measure(added, run, {"retail/success": 0.5})
    registry.name_version(CHAMPION, added)

    assert (added.number, added.tags["kept"]) == ("1", "yes")
    assert added.model.startswith("m-")
    for again in (registry.named(CHAMPION), registry.find("content")):
        assert again is not None
        assert again == added
        assert registry.artifact(again, "evaluation/results.json") == {"rows": [1, 2]}
    measured = client.get_logged_model(added.model).metrics
    assert [(m.key, m.value) for m in measured] == [("retail/success", 0.5)]
    with pytest.raises(TrackingError, match="refused"):
        registry.artifact(added, "evaluation/other.json")
