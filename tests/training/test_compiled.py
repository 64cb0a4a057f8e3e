"""The kernels of training: the same probabilities and gradients as torch's, up to rounding."""

from itertools import accumulate
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.agent.model import make_model
from progrl.agent.native import find_compiler
from progrl.errors import ConfigurationError
from progrl.ranks import Ranks
from progrl.training import optimiser
from progrl.training.batching import Example, MicroBatch, microbatches
from progrl.training.optimiser import Optimiser
from progrl.training.scoring import TORCH, Arithmetic, Scorer
from tests.training.test_batching import VOCABULARY, family

there = pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")
KERNELS = Arithmetic(kernels=True)


def small(**changes: int) -> Any:
    """A model whose weights are far from their small beginnings, so that attention attends."""
    shape = {"layers": 3, "hidden": 48, "ffn": 80, "window": 128, **changes}
    model = make_model(vocabulary=VOCABULARY, seed=1, **shape)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model


PLAIN = Scorer(small())
FAST = Scorer(PLAIN.model, KERNELS) if find_compiler() else PLAIN


def learned(scorer: Scorer, batches: list[MicroBatch]) -> list[torch.Tensor]:
    """Log-probabilities of all that is scored, and each weight's gradient of a sum of them."""
    scorer.zero_grad()
    found = []
    for batch in batches:
        logprobs = scorer(batch.inputs, 0.7)
        (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().backward()
        found.append(logprobs.detach())
    gradients = [p.grad for p in scorer.parameters()]
    return [torch.cat(found), *(g.clone() for g in gradients if g is not None)]


@there
@given(st.integers(0, 10**6), st.integers(30, 400), st.booleans())
@settings(max_examples=30, deadline=None)
def test_probabilities_and_gradients_are_those_of_torch(
    seed: int, budget: int, shared: bool
) -> None:
    """Of conversations of all lengths, some with biases, apart and as trees."""
    random = Random(seed)
    families = [family(random) for _ in range(random.randint(1, 3))]
    starts = [0, *accumulate(map(len, families))]
    trees = [range(s, s + len(f)) for s, f in zip(starts, families, strict=False)]
    examples = [e for members in families for e in members]
    batches = list(microbatches(examples, budget, trees if shared else None))
    plain, fast = learned(PLAIN, batches), learned(FAST, batches)
    for one, other in zip(plain, fast, strict=True):
        largest = float(one.abs().max()) if one.numel() else 0.0
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4 * max(1.0, largest))


@there
@pytest.mark.parametrize("length", [2, 31, 32, 33, 127])
@pytest.mark.parametrize("changes", [{"heads": 1, "head_dim": 16}, {"heads": 2, "head_dim": 48}])
def test_they_fit_every_width_and_length(length: int, changes: dict[str, int]) -> None:
    model, random = small(**changes), Random(length)
    ids = [[random.randrange(VOCABULARY) for _ in range(n)] for n in (length, max(2, length // 2))]
    examples = [Example(row, [random.random() < 0.5 for _ in row[:-1]] + [True]) for row in ids]
    batches = list(microbatches(examples, 1000))
    plain, fast = (learned(Scorer(model, how), batches) for how in (TORCH, KERNELS))
    torch.testing.assert_close(fast, plain, rtol=1e-3, atol=1e-3)


@there
def test_the_same_again_is_the_same_to_the_last_bit() -> None:
    random = Random(3)
    examples = family(random) + family(random)
    batches = list(microbatches(examples, 200))
    for one, other in zip(learned(FAST, batches), learned(FAST, batches), strict=True):
        assert torch.equal(one, other)


@there
def test_who_has_nothing_left_to_do_has_a_gradient_of_zero() -> None:
    (batch,) = microbatches([Example([1, 2, 3], [False, True, True])], 100, ranks=Ranks(1, 2))
    assert [float(g.abs().sum()) for g in learned(FAST, [batch])[1:]] == [0.0] * len(
        list(FAST.parameters())
    )


@there
def test_updates_lead_to_the_same_weights() -> None:
    examples = family(Random(5))
    ends = []
    for how in (TORCH, KERNELS):
        model = small()
        trainer = Optimiser(model, 1e-3, 0.1, 1.0, how)
        for _ in range(5):
            for batch in microbatches(examples, 200):
                trainer.backward(-trainer.scorer(batch.inputs).sum())
            trainer.step(1.0)
        ends.append({name: p.detach().clone() for name, p in model.named_parameters()})
    torch.testing.assert_close(ends[1], ends[0], rtol=1e-2, atol=1e-4)


@there
def test_what_they_cannot_compute_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"agent.compile.*multiples of 16.*hidden 40"):
        Scorer(small(hidden=40), KERNELS)
    monkeypatch.setattr(optimiser, "sharded", lambda: True)
    with pytest.raises(ConfigurationError, match=r"agent.compile: .*divided .FSDP.*=false"):
        Optimiser(small(), 1e-3, 0.0, 1.0, KERNELS, Ranks(0, 2))


def test_without_a_compiler_that_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"agent.compile: needs a C\+\+ compiler"):
        Scorer(small(), KERNELS)
