"""Micro-batches: each example once, within the budget, alike for trees and for many processes."""

from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.agent.model import make_model
from progrl.ranks import Ranks
from progrl.training import scoring
from progrl.training.batching import Example, MicroBatch, gather, microbatches
from progrl.training.scoring import Scorer, TokenBias

lengths = st.lists(st.integers(2, 40), min_size=1, max_size=20)
VOCABULARY = 40


@given(lengths, st.integers(1, 200), st.integers(1, 4))
@settings(max_examples=50)
def test_each_example_is_in_one_batch_of_one_process_within_the_budget(
    sizes: list[int], budget: int, processes: int
) -> None:
    examples = [Example([n] * n, [False] + [True] * (n - 1)) for n in sizes]
    shares = [
        list(microbatches(examples, budget, ranks=Ranks(rank, processes)))
        for rank in range(processes)
    ]
    assert len({len(share) for share in shares}) == 1
    batches = [batch for share in shares for batch in share]
    assert sorted(m for b in batches for m in b.members) == list(range(len(sizes)))
    for batch in batches:
        assert batch.inputs.ids.numel() <= budget or len(batch.inputs.ids) == 1
        assert len(batch.inputs.targets) == sum(examples[m].learned for m in batch.members)


def test_what_two_have_in_common_stands_once() -> None:
    """1 2 3 and 1 2 4 5, of which 3, 4 and 5 are learned: five tokens, a fork after the second."""
    examples = [
        Example([1, 2, 3], [False, False, True]),
        Example([1, 2, 4, 5], [False, False, True, True]),
    ]
    (batch,) = microbatches(examples, 100, [[0, 1]])
    inputs = batch.inputs
    assert inputs.ids.tolist() == [[1, 2, 3, 4, 5]]
    assert inputs.positions is not None and inputs.visible is not None
    assert inputs.positions.tolist() == [[0, 1, 2, 2, 3]]
    assert (inputs.sources.tolist(), inputs.targets.tolist()) == ([1, 1, 3], [3, 4, 5])
    assert inputs.visible[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]
    assert gather(batch, [[0.5], [0.25, 0.125]]).tolist() == [0.5, 0.25, 0.125]


def test_who_has_little_in_common_is_read_apart() -> None:
    random = Random(1)
    examples = [
        Example([1, *(random.randrange(2, 40) for _ in range(500))], [False] + [True] * 500)
        for _ in range(4)
    ]
    (batch,) = microbatches(examples, 4000, [[0, 1, 2, 3]])
    assert batch.inputs.ids.shape == (4, 501) and batch.inputs.visible is None


def family(random: Random) -> list[Example]:
    """Conversations that open alike and part here and there, one of them twice."""
    trunk = [random.randrange(VOCABULARY) for _ in range(random.randint(3, 30))]
    found = []
    for _ in range(random.randint(2, 6)):
        own = [random.randrange(VOCABULARY) for _ in range(random.randint(1, 10))]
        ids = trunk[: random.randint(1, len(trunk))] + own
        mask = [False] + [random.random() < 0.4 for _ in ids[1:]]
        bias = {i: ((random.randrange(VOCABULARY), 1.5),) for i, m in enumerate(mask) if m}
        found.append(Example(ids, mask, bias if random.random() < 0.3 else {}))
    return [*found, found[0]]


def scores(scorer: Scorer, batches: list[MicroBatch], examples: list[Example]) -> list[list[float]]:
    rows: list[list[float]] = [[] for _ in examples]
    for batch in batches:
        logprobs = scorer(batch.inputs, 0.7).tolist()
        for member in batch.members:
            n = examples[member].learned
            rows[member], logprobs = logprobs[:n], logprobs[n:]
    return rows


@given(st.integers(0, 10**6), st.integers(30, 400))
@settings(max_examples=20, deadline=None)
def test_trees_change_no_probability_and_no_gradient(seed: int, budget: int) -> None:
    random = Random(seed)
    families = [family(random) for _ in range(random.randint(1, 3))]
    examples = [e for members in families for e in members]
    starts = [sum(map(len, families[:n])) for n in range(len(families))]
    trees = [range(s, s + len(f)) for s, f in zip(starts, families, strict=True)]
    scorer = Scorer(make_model(vocabulary=VOCABULARY, layers=2, window=64, seed=1))
    found = []
    for batches in (microbatches(examples, budget), microbatches(examples, budget, trees)):
        scorer.zero_grad()
        given_batches = list(batches)
        for batch in given_batches:
            scorer(batch.inputs, 0.7).sum().backward()
        gradient = torch.cat([p.grad.flatten() for p in scorer.parameters() if p.grad is not None])
        found.append((scores(scorer, given_batches, examples), gradient))
    (apart, left), (together, right) = found
    for a, b in zip(apart, together, strict=True):
        assert a == pytest.approx(b, abs=1e-4)
    torch.testing.assert_close(left, right, atol=1e-3, rtol=1e-3)


def test_who_has_nothing_left_to_do_has_a_gradient_of_zero() -> None:
    one = [Example([1, 2, 3], [False, True, True])]
    (batch,) = microbatches(one, 100, ranks=Ranks(1, 2))
    assert batch.members == []
    scorer = Scorer(make_model(vocabulary=VOCABULARY, layers=2, window=64, seed=1))
    scorer(batch.inputs).sum().backward()
    assert all(p.grad is not None and not p.grad.any() for p in scorer.parameters())


def test_scoring_in_chunks_changes_nothing_and_holds_one_chunks_logits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = Random(2)
    ids = [random.randrange(VOCABULARY) for _ in range(50)]
    (batch,) = microbatches([Example(ids, [True] * 50)], 100)
    bias = TokenBias.of([(3, 7, 1.5), (33, 8, -2.0)])
    found = []
    for chunk in (4096, 9):
        monkeypatch.setattr(scoring, "CHUNK", chunk)
        scorer = Scorer(make_model(vocabulary=VOCABULARY, layers=2, window=64, seed=1))
        heights: list[int] = []
        scorer.model.get_output_embeddings().register_forward_hook(
            lambda _, __, out, heights=heights: heights.append(len(out))
        )
        values = scorer(batch.inputs._replace(bias=bias), 0.7)
        values.sum().backward()
        gradient = torch.cat([p.grad.flatten() for p in scorer.parameters() if p.grad is not None])
        assert max(heights) == min(chunk, 49)
        found.append((values.detach(), gradient))
    torch.testing.assert_close(found[0], found[1], atol=1e-4, rtol=1e-4)
