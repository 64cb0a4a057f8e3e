"""The decoder's shortcuts change nothing."""

import numpy as np
import pytest
import torch

from progrl.agent.engines.decoder import Decoder
from progrl.agent.model import make_model


@pytest.mark.parametrize("counts", [[9, 9, 9], [9, 4, 7]], ids=["even", "uneven"])
def test_what_is_read_is_the_same_wherever_it_lies(counts: list[int]) -> None:
    """Slots side by side are read in place, others are copied out: to the last bit the same."""
    model = make_model(vocabulary=50, kv_heads=1, layers=2, seed=1)
    decoder = Decoder(model, torch.float32)
    ids = np.arange(sum(counts)) * 7 % 50
    found = []
    with torch.inference_mode():
        for slots in ([1, 2, 3], [0, 2, 5], [3, 2, 0]):
            cache, at = decoder.new_cache(6), np.asarray(slots)
            for _ in range(2):
                states = decoder.read(cache, at, np.asarray(counts), ids)
            order = np.argsort(at)
            after = decoder.decode(cache, at[order], np.arange(3)[order])[np.argsort(order)]
            found.append((states, after, cache.lengths[at].tolist()))
    first = found[0]
    assert first[2] == [2 * count + 1 for count in counts]
    for states, after, lengths in found[1:]:
        assert torch.equal(states, first[0]) and torch.equal(after, first[1])
        assert lengths == first[2]
