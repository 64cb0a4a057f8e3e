"""The heads by their equations, and policies on disk."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from progrl.config.orchestration import ClosedHead, DecayContext, OpenHead
from progrl.dialogue.messages import ToolSpec
from progrl.embedding import Vectors, encoder
from progrl.errors import CheckpointError, ConfigurationError, DataError, ProgrlError
from progrl.files import file_digest
from progrl.orchestration import Catalogue, ToolPolicy, fit
from progrl.orchestration.decisions import decide
from progrl.seeds import Seed
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

CARDS = (("a", "first"), ("b", "second"))
VECTORS = np.array([[1.0, 0.0], [0.6, 0.8]], np.float32)
Edit = Callable[[dict[str, Any]], object]


def _policy(head: ClosedHead | OpenHead) -> ToolPolicy:
    return ToolPolicy(
        encoder="toy",
        dimension=2,
        tools=CARDS,
        context=DecayContext(kind="decay", alpha=0.7),
        head=head,
        width=3,
        seed=Seed.root(1),
    )


def _hidden(policy: ToolPolicy, x: Vectors) -> Vectors:
    w1, w2, w3 = (policy.state_dict()[f"body.{i}.weight"].numpy() for i in (0, 2, 4))
    return np.asarray(w3 @ np.maximum(w2 @ np.maximum(w1 @ x, 0), 0), np.float32)


def test_equation_12() -> None:
    policy = _policy(ClosedHead(kind="closed"))
    x = np.array([0.6, 0.8, 0.1, 0.2, 0, 0], np.float32)
    scores = policy(torch.from_numpy(x)[None], Catalogue(CARDS, VECTORS))
    assert policy.state_dict()["body.4.weight"].shape == (2, 3)
    assert scores[0].tolist() == pytest.approx(_hidden(policy, x).tolist())


def test_equation_13() -> None:
    policy = _policy(OpenHead(kind="open", describe=0.5))
    assert not policy.learned.any()  # v_i starts as the description's embedding
    with torch.no_grad():
        policy.learned[1] = torch.tensor([0.5, -0.5])
        policy.bias[1] = 0.25
    x = np.array([0.6, 0.8, 0.1, 0.2, 0, 0], np.float32)
    catalogue = Catalogue((*CARDS, ("new", "third")), np.array([*VECTORS, [0, 1]], np.float32))
    scores = policy(torch.from_numpy(x)[None], catalogue)[0].tolist()
    made = _hidden(policy, x)
    plain = policy(torch.from_numpy(x)[None], catalogue, torch.tensor([1.0, 0.0, 1.0]))[0].tolist()
    assert plain[1] == pytest.approx(made @ [0.6, 0.8], abs=1e-6)
    assert scores == pytest.approx([made[0], made @ [1.1, 0.3] + 0.25, made[1]], abs=1e-6)


def test_a_tool_scores_the_same_whatever_stands_beside_it() -> None:
    policy, whole = learned(), CATALOGUES["retail"]
    turned = Catalogue(whole.cards[::-1], whole.vectors[::-1].copy())
    x = torch.randn(4, 3 * ENCODER.dimension, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(policy(x, turned).flip(1), policy(x, whole), atol=1e-4)


def test_a_closed_head_refuses_a_tool_that_it_does_not_know() -> None:
    policy = _policy(ClosedHead(kind="closed"))
    with pytest.raises(ConfigurationError, match="does not know: new"):
        policy(torch.zeros(1, 6), Catalogue((("new", "third"),), VECTORS[:1]))


def test_an_unseen_tool_scores_like_the_tool_it_resembles() -> None:
    like = ToolSpec("look_up", "Find and identify a customer by email, or by name and zip.", {})
    odd = ToolSpec("paint", "Draw cartoons on walls.", {})
    catalogue = Catalogue.of([*RETAIL.tools, like, odd], ENCODER)
    held_out = dialogues("validation", 60)
    policy = learned()
    decisions = decide(
        held_out, {"retail": catalogue}, policy.context, ENCODER, lambda _, v: np.zeros_like(v)
    )
    with torch.no_grad():
        scores = policy(decisions.features(torch.arange(len(decisions))), decisions.catalogue)
    names = decisions.catalogue.names
    known = [name for name in names if name not in ("look_up", "paint")]
    alike = np.corrcoef(scores.numpy().T)[names.index("look_up")]
    assert max(known, key=lambda name: alike[names.index(name)]) == "find_user"
    assert alike[names.index("find_user")] > 0.8 > alike[names.index("paint")]
    due = scores[decisions.chosen == names.index("find_user")].mean(dim=0)
    mean = dict(zip(names, due.tolist(), strict=True))
    # Where find_user is due, its likeness comes before all other calls, learned ones too.
    calls = [name for name in names if name not in ("talk", "stop")]
    assert sorted(calls, key=lambda name: -mean[name])[:2] == ["find_user", "look_up"]
    assert mean["look_up"] > mean["paint"] + 1


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", SEED), ("b", SEED), ("c", Seed.root(4))):
        torch.manual_seed(len(name))  # the global generator decides nothing
        few = dialogues("train", 200)[:30]
        fit(configured(steps=20), CATALOGUES, few, ENCODER, SIMILAR, seed).save(tmp_path / name)
    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b")
    assert file_digest(tmp_path / "a") != file_digest(tmp_path / "c")


@pytest.mark.parametrize("head", ["open", "closed"])
def test_it_comes_back_as_it_was(head: str, tmp_path: Path) -> None:
    policy = learned(head)
    policy.save(tmp_path / "p")
    back = ToolPolicy.load(tmp_path / "p")
    x = torch.randn(5, 3 * ENCODER.dimension, generator=torch.Generator().manual_seed(1))
    assert torch.equal(back(x, CATALOGUES["retail"]), policy(x, CATALOGUES["retail"]))
    assert (back.head, back.context, back.tools) == (policy.head, policy.context, policy.tools)
    assert all(parameter.requires_grad for parameter in back.parameters())


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda about: about.update(width=65), "of shape"),
        (lambda about: about.update(dimension=10**9), "of shape"),
        (lambda about: about.update(dimension=-1), "dimension"),
        (lambda about: about.update(width=10**18), "width"),
        (lambda about: about.update(width=10**30), "width"),
        (lambda about: about.update(version=2), "version"),
        (lambda about: about.pop("tools"), "tools"),
        (lambda about: about["tools"].pop(), "of shape"),
        (lambda about: about.update(head={"kind": "closed"}), "expected"),
        (lambda about: about.update(weights="0"), "not the file"),
    ],
)
def test_what_does_not_fit_is_refused(edit: Edit, words: str, tmp_path: Path) -> None:
    learned().save(tmp_path / "p")
    path = tmp_path / "p" / "policy.json"
    about = json.loads(path.read_text())
    edit(about)
    path.write_text(json.dumps(about))
    with pytest.raises(CheckpointError, match=words) as caught:
        ToolPolicy.load(tmp_path / "p")
    assert str(tmp_path / "p") in str(caught.value)


@pytest.mark.parametrize(
    ("name", "keep", "kind"),
    [
        ("policy.safetensors", 1000, CheckpointError),
        ("policy.safetensors", 0, CheckpointError),
        ("policy.json", 50, DataError),
    ],
)
def test_a_cut_file_is_refused(
    name: str, keep: int, kind: type[ProgrlError], tmp_path: Path
) -> None:
    learned().save(tmp_path / "p")
    path = tmp_path / "p" / name
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(kind):
        ToolPolicy.load(tmp_path / "p")
    path.unlink()
    with pytest.raises((CheckpointError, DataError)):
        ToolPolicy.load(tmp_path / "p")


def test_another_encoder_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="fitted with the encoder toy"):
        _policy(OpenHead(kind="open", describe=0.5)).check_encoder(encoder("hashed"))
