"""A sweep: variants of the method by seeds, each cell in a folder of its own."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from progrl.config import Config, find_profile, load_config, resolved
from progrl.config.presets import FULL, Preset, differences, presets, variant
from progrl.errors import ConfigurationError, nearest
from progrl.evaluation.sweep import PLAYED, SETTINGS
from progrl.files import read_json, write_json, write_text
from progrl.stages import find_stage
from tasks.environment import PROJECT
from tasks.job import Job

BASE = "base"
"""Folder of what all variants of a seed share: tasks, users, the warm start."""

CONFIGURATION, EVALUATION = "configuration.yaml", "evaluated.yaml"


@dataclass(frozen=True)
class Sweep:
    """What is asked for.

    Attributes:
        name: of its folder in outputs/sweeps.
        profile: laid over params.yaml, for all cells.
        overrides: `a.b=c`, laid over the profile, for all cells.
        project: the repository.
        known: all presets by name.
    """

    name: str
    profile: str
    overrides: tuple[str, ...]
    project: Path
    known: dict[str, Preset]

    @property
    def root(self) -> Path:
        """The folder of all cells."""
        return self.project / "outputs" / "sweeps" / self.name

    def folder(self, seed: int, name: str) -> Path:
        """The folder of a cell, or of a seed's shared part."""
        return self.root / f"seed-{seed}" / name

    def config(self, seed: int, name: str = FULL) -> Config:
        """The configuration of a cell.

        Raises:
            ConfigurationError: it is wrong, or the preset cannot be run.
        """
        params = self.project / "params.yaml"
        base = load_config(params, self.profile, [*self.overrides, f"seed={seed}"])
        return variant(base, name, self.known[name])

    def base(self, seed: int) -> Job:
        """The part that all variants of a seed share, under the configuration of `full`."""
        return self._job(seed, BASE, self.config(seed))

    def cell(self, seed: int, name: str) -> Job:
        """The training of a variant."""
        return self._job(seed, name, self.config(seed, name))

    def evaluation(self, seed: int, name: str) -> Job:
        """The evaluation of a variant: with what it has learned, by the protocol and the reward of
        `full`, so that figures mean the same for all variants. Other advice than its own is played
        by `full` alone."""
        full, own = self.config(seed), self.config(seed, name)
        protocol = full.evaluation
        if name != FULL:
            protocol = protocol.model_copy(update={"compare_advice": False})
        alike = {"reward": full.reward, "evaluation": protocol}
        return self._job(seed, name, own.model_copy(update=alike), EVALUATION)

    def _job(self, seed: int, name: str, config: Config, file: str = CONFIGURATION) -> Job:
        root = self.folder(seed, name)
        return Job(str(root / file), (), config, self.project, root)


def make_sweep(
    name: str, profile: str, overrides: Sequence[str] = (), project: Path = PROJECT
) -> Sweep:
    """The sweep of that name.

    Raises:
        ConfigurationError: the name is no plain folder name, or the profile or a preset is wrong.
    """
    if not name or name.startswith(".") or Path(name).name != name:
        raise ConfigurationError(f"{name!r}: the name of a sweep is that of a folder.")
    find_profile(project / "params.yaml", profile)
    return Sweep(name, profile, tuple(overrides), project, presets(project))


def chosen(sweep: Sweep, names: Sequence[str] | None) -> list[str]:
    """The variants to run, `full` first: all of no group that are applicable, or those named.

    Args:
        names: of presets, and of groups of them.

    Raises:
        ConfigurationError: there is no such preset or group.
    """
    groups: dict[str, list[str]] = {}
    for name, preset in sweep.known.items():
        if not preset.not_applicable:
            groups.setdefault(preset.group, []).append(name)
    wanted = {FULL}
    for name in names or ("",):
        if name not in sweep.known and name not in groups:
            meant = nearest(name, [*sweep.known, *groups])
            hint = f"; {meant}" if meant else "."
            own = [one for one, preset in sweep.known.items() if not preset.group]
            known = ", ".join([*own, *(f"the group {g}" for g in groups if g)])
            raise ConfigurationError(f"No preset {name!r}{hint} There are {known}.")
        wanted |= {name} if name in sweep.known else set(groups[name])
    return [name for name in sweep.known if name in wanted]


def note_settings(sweep: Sweep, names: Sequence[str], seeds: Sequence[int]) -> None:
    """Write sweep.json: what the cells are, for the table that is made of them.

    A sweep may grow by variants and seeds; what it has already stays as it is.

    Raises:
        ConfigurationError: the sweep of that name was made with other settings.
    """
    path = sweep.root / SETTINGS
    base = sweep.config(0)
    before: dict[str, Any] = read_json(path) if path.exists() else {}
    if before and (changed := _other(Config.model_validate(before["base"]), base)):
        raise ConfigurationError(
            f"The sweep {sweep.name!r} was begun with another configuration "
            f"({', '.join(changed)}), and cells of two make no table. Name another sweep."
        )
    described = {
        name: {
            **preset.model_dump(exclude={"changes", "not_applicable", "group"}),
            **(
                {"not_applicable": preset.not_applicable}
                if preset.not_applicable
                else {"changes": differences(base, sweep.config(0, name))}
            ),
        }
        for name, preset in sweep.known.items()
        if name in names or preset.not_applicable
    }
    kept = before.get("variants", {})
    for name in described.keys() & kept.keys():
        if described[name].get("changes") != kept[name].get("changes"):
            raise ConfigurationError(
                f"The preset {name!r} has changed since the sweep {sweep.name!r} was begun. Name "
                "another sweep."
            )
    both = {**kept, **described}
    write_json(
        path,
        {
            "name": sweep.name,
            "profile": sweep.profile,
            "overrides": list(sweep.overrides),
            "seeds": sorted({*before.get("seeds", ()), *seeds}),
            "variants": {name: both[name] for name in sweep.known if name in both},
            "base": resolved(base),
        },
    )


def _other(before: Config, now: Config) -> list[str]:
    """The keys of another value that change results."""
    return [key for key in differences(before, now) if not key.startswith("tracking")]


def prepare(job: Job) -> None:
    """Make a job's folder, with its configuration as a profile laid over params.yaml.

    Raises:
        ConfigurationError: a profile cannot say what the configuration says.
    """
    path = Path(job.profile)
    write_text(path, yaml.safe_dump(resolved(job.config), sort_keys=False))
    if load_config(job.project / "params.yaml", str(path)) != job.config:
        raise ConfigurationError(
            f"{path}: laid over params.yaml it gives another configuration. Empty mappings, such "
            "as domains.options, cannot take keys of params.yaml away."
        )


def share(base: Path, root: Path) -> None:
    """Link what a cell reads and its training does not write from its seed's shared part, and the
    folder of what the agents before training have played, once for all cells."""
    training, evaluation = find_stage("grpo"), find_stage("evaluate")
    (base / PLAYED).mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys((*training.inputs, *evaluation.inputs, PLAYED)):
        if name in training.outputs:
            continue
        link = root / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(base / name, link.parent))
