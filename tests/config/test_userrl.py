"""UserRL's findings as presets: each changes in the gyms what it is about, and nothing else."""

from pathlib import Path

import pytest

from progrl.config import load_config
from progrl.config.presets import differences, presets, variant

ROOT = Path(__file__).parents[2]
KNOWN = {name: preset for name, preset in presets(ROOT).items() if preset.group == "userrl"}
OTHERS = {"userrl_no_sft": ["grpo.start"], "userrl_user_b": ["user.family"]}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_preset_changes_in_the_gyms_what_it_is_about(name: str) -> None:
    base = load_config(ROOT / "params.yaml", "gyms")
    made = variant(base, name, KNOWN[name])
    changed = list(differences(base, made))
    assert changed == OTHERS.get(name, ["grpo.score", "grpo.credit"])
    if name not in OTHERS:
        credit, score = name.removeprefix("userrl_").split("_")
        assert made.grpo.credit.kind == credit
        assert made.grpo.score.kind == ("r2g" if score == "bounded" else score)


def test_the_table_of_shapings_by_scores_is_whole() -> None:
    credits_, scores = ("equalized", "naive", "r2g", "em"), ("mean", "sum", "r2g")
    cells = {f"userrl_{credit}_{score}" for credit in credits_ for score in scores}
    bounded = {f"userrl_{credit}_bounded" for credit in credits_[1:]}
    assert set(KNOWN) == cells | bounded | set(OTHERS)
