"""Learning from the expert's dialogues, and folds that keep hints honest."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from progrl.config.orchestration import HintAdvice, SilentAdvice
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import Trajectory, Turn
from progrl.errors import CheckpointError, ConfigurationError, DataError
from progrl.files import file_digest
from progrl.orchestration import (
    Catalogue,
    FoldedPolicies,
    accuracy,
    fit,
    fit_folds,
    fold_of,
    tool_of,
)
from progrl.orchestration.decisions import decide, used_tools
from progrl.stages.advice import check_fitted
from tests.builders import make_trajectory
from tests.orchestration.desk import (
    CATALOGUES,
    ENCODER,
    RETAIL,
    SEED,
    SIMILAR,
    configured,
    dialogues,
    learned,
)

RETAIL_NAMES = CATALOGUES["retail"].names


@pytest.mark.parametrize("head", ["open", "closed"])
def test_200_dialogues_teach_more_than_the_majority_knows(head: str) -> None:
    held_out = dialogues("validation", 60)
    used = Counter(tool_of(t.action) for d in held_out for t in d.turns if t.action)
    majority = used.most_common(1)[0][1] / used.total()
    assert accuracy(learned(head), CATALOGUES, held_out, ENCODER) > majority + 0.2


def test_decisions_are_the_tools_used() -> None:
    turns = [
        Turn(ToolCall("get_order", {"order": "1"}), "", failed=True),
        Turn(None, "gibberish", failed=True),
        Turn(ToolCall("no_such_tool"), "", failed=True),
        Turn(ToolCall("get_order", {"order": "1"}), ""),
        Turn(Say("confirm ?"), ""),
        Turn(Say("bye", closing=True), ""),
    ]
    episode = replace(dialogues("train", 200)[0], turns=turns)
    catalogue = CATALOGUES["retail"]
    order, talk, stop = (RETAIL_NAMES.index(n) for n in ("get_order", "talk", "stop"))
    expected = [(order, True), (order, False), (talk, False), (stop, False)]
    assert used_tools(episode, catalogue) == expected
    made = decide(
        [episode], CATALOGUES, configured().context, ENCODER, lambda _, v: np.zeros_like(v)
    )
    # What failed is not learned, but it is remembered.
    assert made.chosen.tolist() == [order, talk, stop]
    assert made.contexts[0].numpy() == pytest.approx(0.3 * catalogue.vectors[order], abs=1e-6)
    assert made.features(torch.arange(3)).shape == (3, 3 * ENCODER.dimension)


def test_tools_of_another_domain_are_never_likely() -> None:
    less = {**CATALOGUES, "toy": Catalogue.of(RETAIL.tools[:1], ENCODER)}
    toy = replace(make_trajectory(), query="hello")
    made = decide([toy], less, configured().context, ENCODER, lambda _, v: np.zeros_like(v))
    log_p = made.log_probabilities(learned(), torch.arange(len(made)))
    likely = {made.catalogue.names[place] for place in torch.nonzero(log_p[0] > -1e6).flatten()}
    assert likely == {"find_user", "talk", "stop"}
    assert log_p.exp().sum(dim=1).tolist() == pytest.approx([1.0] * len(made))


def test_nothing_to_learn_from_is_said() -> None:
    with pytest.raises(DataError, match="nothing to learn"):
        fit(configured(), CATALOGUES, [], ENCODER, SIMILAR, SEED)
    with pytest.raises(DataError, match="Episodes of toy"):
        fit(configured(), CATALOGUES, [make_trajectory()], ENCODER, SIMILAR, SEED)


@given(st.text(max_size=30), st.integers(2, 9))
def test_hints_on_a_training_task_come_from_a_policy_that_has_not_seen_it(
    task_id: str, folds: int
) -> None:
    policies = FoldedPolicies(learned(), tuple(learned() for _ in range(folds)))
    blind = [n for n in range(folds + 1) if not policies.saw(n, task_id)]
    assert blind == [fold_of(task_id, folds)]
    assert policies.for_training(task_id) is policies.all[blind[0]]


def _changed(dialogue: Trajectory) -> Trajectory:
    return replace(dialogue, query="quite another query", turns=dialogue.turns[-1:])


def test_nothing_of_a_fold_reaches_the_policy_without_it(tmp_path: Path) -> None:
    config, few = configured(steps=15), dialogues("train", 200)[:40]
    other = [_changed(d) if fold_of(d.task_id, 3) == 1 else d for d in few]
    for name, some in (("a", few), ("b", other)):
        fit_folds(config, CATALOGUES, some, ENCODER, SIMILAR, SEED).save(tmp_path / name)
    same = {
        part: file_digest(tmp_path / "a" / part) == file_digest(tmp_path / "b" / part)
        for part in ("without-0", "without-1", "without-2", "policy.safetensors")
    }
    assert same == {
        "without-0": False,
        "without-1": True,
        "without-2": False,
        "policy.safetensors": False,
    }


def test_folds_come_back_as_they_were(tmp_path: Path) -> None:
    few = dialogues("train", 200)[:40]
    made = fit_folds(configured(steps=5), CATALOGUES, few, ENCODER, SIMILAR, SEED)
    made.save(tmp_path / "p")
    back = FoldedPolicies.load(tmp_path / "p")
    x = torch.randn(3, 3 * ENCODER.dimension, generator=torch.Generator().manual_seed(1))
    for old, new in zip(made.all, back.all, strict=True):
        assert torch.equal(old(x, CATALOGUES["retail"]), new(x, CATALOGUES["retail"]))
    learned("closed").save(tmp_path / "p" / "without-1")
    with pytest.raises(CheckpointError, match="not of one fit"):
        FoldedPolicies.load(tmp_path / "p")
    for about in ("{}", '{"version": 1, "folds": "x"}', '{"version": 1, "folds": -1}'):
        (tmp_path / "p" / "folds.json").write_text(about)
        with pytest.raises(CheckpointError, match="no folds"):
            FoldedPolicies.load(tmp_path / "p")


def test_where_nobody_gets_hints_the_whole_alone_is_fitted() -> None:
    config, few = configured(steps=5), dialogues("train", 200)[:40]
    alone = fit_folds(config, CATALOGUES, few, ENCODER, SIMILAR, SEED, parts=False)
    with_parts = fit_folds(config, CATALOGUES, few, ENCODER, SIMILAR, SEED)
    assert alone.all == (alone.whole,)
    assert alone.saw(0, few[0].task_id)
    for name, weight in alone.whole.state_dict().items():
        assert torch.equal(weight, with_parts.whole.state_dict()[name])


def test_policies_fitted_with_other_settings_are_not_used() -> None:
    few = dialogues("train", 200)[:40]
    config = HintAdvice(kind="hint", top=2, drop=0.0, policy=configured(steps=5))
    with_parts = fit_folds(config.policy, CATALOGUES, few, ENCODER, SIMILAR, SEED)
    alone = FoldedPolicies(with_parts.whole, ())
    check_fitted(with_parts, config, Path("models/sft"))
    silent = SilentAdvice(kind="silent", policy=config.policy)
    check_fitted(alone, silent, Path("models/sft"))
    with pytest.raises(ConfigurationError, match=r"models/sft: .*policy\.folds than.*progrl sft"):
        check_fitted(alone, config, Path("models/sft"))
    other = configured("closed", steps=5).model_copy(update={"width": 33})
    with pytest.raises(ConfigurationError, match=r"policy\.head, width than"):
        check_fitted(alone, SilentAdvice(kind="silent", policy=other), Path("models/sft"))
