"""Starting weights from which a small model can copy.

Tool agents must copy ids that they have never seen. From random weights, the circuit that does it
(a head that looks at the previous token, and after it a head that finds where the present token
stood before and takes what followed) comes late and by luck in a model of this size. Here one head
of each of the first two layers starts as that circuit; training may do with it what it wants. The
idea is that of mimetic initialisation: start near a structure that trained models have.
"""

import math
from typing import Any

import torch

TOKEN_STD = 0.08
COMMON = 0.08
"""Root mean square of the part that all token vectors share: without it a head that is to look at a
position, whatever stands there, has nothing to build its query from."""
SHARP = 2.0
MATCH = 1.5
COPY = 4.0


def start_copying(model: Any, generator: torch.Generator) -> None:
    """Overwrite token vectors, and one head in each of the first two layers, in place.

    Args:
        model: Qwen3-architecture, at least two layers, hidden width above twice the head width.
        generator: of all that is random.
    """
    hidden, width = model.config.hidden_size, model.config.head_dim
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    with torch.no_grad():
        common = _unit(torch.randn(hidden, generator=generator))
        tokens = model.get_input_embeddings().weight
        tokens.normal_(0, TOKEN_STD, generator=generator)
        tokens.sub_((tokens @ common)[:, None] * common)
        tokens.add_(common * COMMON * math.sqrt(hidden))
        free = torch.randn(hidden, hidden, generator=generator)
        free -= torch.outer(common, common @ free)
        basis = torch.linalg.qr(free[:, : 2 * width]).Q
        read, written = basis[:, :width], basis[:, width:]

        query, key = _one_back(width, model.config.rope_parameters["rope_theta"])
        first.q_proj.weight[:width] = 4 * torch.outer(query, common)
        first.k_proj.weight[:width] = 4 * torch.outer(key, common)
        fastest = query.bool() | key.bool()
        for norm in (first.q_norm, first.k_norm):
            norm.weight[fastest] = SHARP
        first.v_proj.weight[:width] = read.T
        first.o_proj.weight[:, :width] = written

        # Fast rotations would scramble a match at a distance: it uses the slow ones alone.
        half = width // 2
        slow = (torch.arange(width) % half >= half // 4).float()[:, None]
        second.q_proj.weight[:width] = 4 * slow * read.T
        second.k_proj.weight[:width] = 4 * slow * written.T
        for norm in (second.q_norm, second.k_norm):
            norm.weight.fill_(MATCH)
        second.v_proj.weight[:width] = read.T
        second.o_proj.weight[:, :width] = COPY * read


def _unit(vector: torch.Tensor) -> torch.Tensor:
    length: torch.Tensor = vector.norm()
    return vector / length


def _one_back(width: int, theta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key [width] that agree best where the key stands one position before the query.

    Only the two fastest rotations take part: the slow ones hardly tell neighbours apart.
    """
    half = width // 2
    query, key = torch.zeros(width), torch.zeros(width)
    for pair in range(2):
        angle = theta ** (-pair / half)
        query[pair] = 1.0
        key[pair], key[pair + half] = math.cos(angle), math.sin(angle)
    return query, key
