"""The model card: what a registered model is, how good, for what, and where it came from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from progrl.config import Config
from progrl.files import file_digest, write_json, write_text
from progrl.reporting import markdown, results_table

_ORIGIN = {
    "embedded": "A small Qwen3-architecture model, made and trained from nothing on generated "
    "dialogues; it knows no language beyond them.",
    "huggingface": "Fine-tuned from a causal language model of the Hugging Face kind, whose "
    "licence holds for this one too.",
}


def write_card(
    folder: Path,
    config: Config,
    model: Path,
    evaluate: Mapping[str, Any],
    record: Mapping[str, Any],
) -> None:
    """Write README.md and record.json into a folder.

    Args:
        model: folder of the model, whose files' hashes are noted.
        evaluate: of metrics/evaluate.json.
        record: the provenance record.
    """
    files = {
        path.relative_to(model).as_posix(): file_digest(path)
        for path in sorted(model.rglob("*"))
        if path.is_file()
    }
    write_json(folder / "record.json", {**record, "files": files})
    write_text(folder / "README.md", card(config, evaluate, record))


def card(config: Config, evaluate: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """The card's text, in Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    dirty = ", ".join(record["dirty"]) or "none"
    sources = [
        {"what": what, "value": str(value if value is not None else "unknown")}
        for what, value in {
            "git commit": record["commit"],
            "uncommitted changes": dirty,
            "hash of these changes": record["diff"] or "none",
            "dvc.lock (MD5)": record["dvc_lock"],
            "seed": record["seed"],
            "configuration": record["configuration"],
            "versions": versions,
        }.items()
    ]
    trained, held_out = ", ".join(config.domains.train), ", ".join(config.domains.held_out)
    return f"""# Agent for conversations with tools

{_ORIGIN[config.agent.kind]} Supervised warm start on expert dialogues, then group relative policy
optimisation against a simulated user, with a horizon that grows with success.

* Trained on: {trained}. Evaluated besides on: {held_out or "nothing else"}.
* For: research on learning from conversations with a simulated user. Not for real customers: it
  was trained and measured with scripted users only.

## Results

Greedy, at most {config.evaluation.horizon} agent turns, one training seed;
{config.evaluation.confidence:.0%} intervals over tasks.

{markdown(results_table(evaluate))}
Episode by episode: `evaluation/results.json`.

## Use

```python
from progrl.agent.model import load_agent_folder

model, codec = load_agent_folder(Path("this folder"))
```

## Origin

{markdown(sources)}
`record.json` has the same with a SHA-256 of each file; `provenance.json` says from what data and
which warm start the training stage made the model.
"""
