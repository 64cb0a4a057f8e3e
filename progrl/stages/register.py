"""Stage `register`: the model enters the registry, and becomes champion if it earned that."""

import logging
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from progrl.config import Config
from progrl.config.models import MlflowTracking
from progrl.errors import DataError, ProgrlError, TrackingError
from progrl.evaluation.gate import Contender, Verdict, judge
from progrl.evaluation.metrics import Result
from progrl.files import digest, file_digest, read_json, write_json
from progrl.reporting.sources import EVALUATE, RESULTS
from progrl.seeds import Seed
from progrl.stages.base import Context, Metrics, find_stage, is_done
from progrl.stages.card import write_card
from progrl.stages.definitions import GRPO as MODEL
from progrl.stages.parts import tasks_file
from progrl.tracking import provenance, run_of
from progrl.tracking.data import changed_stages
from progrl.tracking.registry import CHALLENGER, CHAMPION, Registry, Version

logger = logging.getLogger(__name__)

REGISTRATION = "registration.json"
NEEDED = ("generate", "sft", "grpo", "evaluate")
"""Stages that must have ended on what is there now, or the run is incomplete."""

_PROTOCOL = "progrl.protocol"
_SHOWN = 4


def run(context: Context) -> Metrics:
    """Register models/grpo, hold it against the champion, and note what came of it."""
    tracking = context.config.tracking
    if tracking.kind == "none":
        reason = "Nothing is registered: tracking.kind is none."
        logger.info(reason)
        write_json(context.work / REGISTRATION, {"version": None, "moved": False, "reason": reason})
        return {}
    told = run_of(context.work)
    if told is None:
        raise TrackingError("The stage register needs its tracking run: start it by `progrl`.")
    registry = Registry.open(context.project, tracking)
    version = _registered(context, registry, told["run"])
    registry.name_version(CHALLENGER, version)
    incumbent = registry.named(CHAMPION)
    verdict = _judged(context, registry, version, incumbent)
    if verdict.moves:
        registry.name_version(CHAMPION, version)
    _note(context, tracking, version, incumbent, verdict)
    return {"register/version": float(version.number), "register/moved": float(verdict.moves)}


def _registered(context: Context, registry: Registry, run: str) -> Version:
    """The version of this very model and evaluation: an earlier one, or a new one."""
    root, config = context.root, context.config
    record = provenance(context.project, config)
    # A model registered from uncommitted sources gets another version once they are committed.
    parts = [file_digest(root / MODEL), file_digest(root / RESULTS), bool(record["dirty"])]
    content = digest(parts)[:32]
    version = registry.find(content)
    if version is None:
        evaluate = read_json(root / EVALUATE)
        beside = context.work / "beside"
        shutil.rmtree(beside, ignore_errors=True)
        (beside / "evaluation").mkdir(parents=True)
        for source in (EVALUATE, RESULTS):
            shutil.copyfile(root / source, beside / "evaluation" / Path(source).name)
        write_card(beside, config, root / MODEL, evaluate, record)
        tags = {
            _PROTOCOL: _protocol(config, root),
            "progrl.configuration": record["configuration"],
            "progrl.commit": record["commit"] or "",
            "progrl.dirty": "yes" if record["dirty"] else "no",
        }
        version = registry.add(run, content, (root / MODEL, beside), tags)
        registry.measure(version, run, _figures(evaluate))
    return version


def _figures(evaluate: Mapping[str, Any]) -> dict[str, float]:
    """The trained agent's headline figures, by benchmark."""
    return {
        f"{name}/{metric}": float(summary["agents"]["grpo"][metric]["mean"])
        for name, summary in evaluate["benchmarks"].items()
        for metric in ("success", "reward", "turns")
        if summary["agents"]["grpo"][metric]["mean"] is not None
    }


def _judged(
    context: Context, registry: Registry, version: Version, incumbent: Version | None
) -> Verdict:
    if incumbent is not None and incumbent.number == version.number:
        return Verdict(False, f"{registry.name} version {version.number} is champion already.")
    config = context.config
    gate = config.evaluation.gate
    protocol = _protocol(config, context.root)
    results = read_json(context.root / RESULTS)
    name = f"{registry.name} version {version.number}"
    obstacles = _obstacles(context)
    champion = None
    if incumbent is not None:
        rival = f"champion version {incumbent.number}"
        try:
            kept = registry.artifact(incumbent, "evaluation/results.json")
            rows = _rows(kept, gate.benchmark, "grpo")
            champion = Contender(rival, rows, incumbent.tags.get(_PROTOCOL, ""))
        except ProgrlError as error:
            obstacles.append(f"the results of {rival} cannot be read ({error})")
    return judge(
        Contender(name, _rows(results, gate.benchmark, "grpo"), protocol),
        Contender("the SFT model", _rows(results, gate.benchmark, "sft"), protocol),
        champion,
        obstacles,
        gate.confidence,
        config.evaluation.bootstrap,
        Seed.root(config.seed).child("gate").value,
    )


def _rows(results: Any, benchmark: str, agent: str) -> list[Result]:
    try:
        rows = results[benchmark][agent]
    except (KeyError, TypeError):
        raise DataError(f"no results of {agent} on {benchmark}") from None
    return [Result.from_json(row) for row in rows]


def _protocol(config: Config, root: Path) -> str:
    """A hash of what two evaluations must share to be comparable."""
    evaluation = config.evaluation
    tasks = file_digest(tasks_file(root, evaluation.gate.benchmark, "test"))
    return digest([tasks, evaluation.horizon, evaluation.trials, evaluation.family])[:16]


def _obstacles(context: Context) -> list[str]:
    """What forbids a new champion whatever its results."""
    record = provenance(context.project, context.config)
    found = []
    if record["commit"] is None:
        found.append("the project is not under git, so its sources are unknown")
    if dirty := record["dirty"]:
        more = f" and {len(dirty) - _SHOWN} more" if len(dirty) > _SHOWN else ""
        found.append(
            f"sources, parameters or configurations are not committed "
            f"({', '.join(dirty[:_SHOWN])}{more}); commit them and register again"
        )
    if missing := _incomplete(context):
        found.append(
            f"the run is incomplete: {', '.join(missing)} did not end on what is there now"
        )
    return found


def _incomplete(context: Context) -> list[str]:
    """Needed stages that neither ended here on these inputs nor stand so in dvc.lock."""

    def unfinished(name: str) -> bool:
        try:
            return not is_done(find_stage(name), context.config, context.root)
        except DataError:
            return True

    names = [name for name in NEEDED if unfinished(name)]
    if names and (context.root / "dvc.lock").exists():
        return changed_stages(context.root, names)
    return names


def _note(
    context: Context,
    tracking: MlflowTracking,
    version: Version,
    incumbent: Version | None,
    verdict: Verdict,
) -> None:
    logger.info("%s version %s is challenger. %s", tracking.model, version.number, verdict.reason)
    before = incumbent.number if incumbent else None
    note = {
        "model": tracking.model,
        "version": version.number,
        "logged_model": version.model,
        "moved": verdict.moves,
        "champion": {"before": before, "after": version.number if verdict.moves else before},
        "reason": verdict.reason,
        "difference": asdict(verdict.difference) if verdict.difference else None,
    }
    write_json(context.work / REGISTRATION, note)
    context.recorder.artifact(context.work / REGISTRATION)
    moved = "yes" if verdict.moves else "no"
    context.recorder.tags({"progrl.champion_moved": moved, "progrl.gate": verdict.reason})
