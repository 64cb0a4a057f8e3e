"""transformers' `generate`, as one would use it for conversations; imports nothing of progrl.

All conversations are one batch of equal lengths. This flatters it: conversations of different
lengths would need padding, and would wait for the longest of each turn.
"""

import time
from typing import Any

import torch
from transformers import DynamicCache, Qwen3Config, Qwen3ForCausalLM

from speed.worker import Job
from speed.workload import Workload


def model_of(work: Workload) -> Any:
    """A new model of the workload's shape: the same weights as progrl's `make_model`."""
    shape = work.shape
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate_size=shape.ffn,
        max_position_embeddings=work.window,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
        dtype="float32",
    )
    torch.manual_seed(1)
    return Qwen3ForCausalLM(config).eval()


def reread(work: Workload) -> Job:
    """Each turn reads the conversation from its start."""
    return _generate(work, keep=False)


def cached(work: Workload) -> Job:
    """The cache is kept from turn to turn."""
    return _generate(work, keep=True)


def _generate(work: Workload, keep: bool) -> Job:
    model = model_of(work)
    contexts = torch.tensor(work.contexts())

    def job() -> dict[str, Any]:
        ids = torch.zeros(work.conversations, 0, dtype=torch.long)
        cache = DynamicCache(config=model.config)
        seconds = []
        for turn in range(work.turns):
            start = time.process_time()
            ids = torch.cat([ids, contexts[:, turn]], dim=1)
            ids = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=work.sampled,
                min_new_tokens=work.sampled,
                do_sample=True,
                top_k=0,
                pad_token_id=0,
                **({"cache": cache} if keep else {}),
            )
            seconds.append(time.process_time() - start)
        if ids.shape[1] != work.length:
            raise RuntimeError(f"{ids.shape[1]} ids where {work.length} were expected")
        return {"tokens": work.tokens, "turn_cpu": seconds}

    return job


def train(work: Workload, batch: int = 8) -> Job:
    """One update over all dialogues as a plain loop does it: batches in order, padded, with labels.

    Args:
        batch: dialogues in a forward pass; gradients are added up over all of them.
    """
    model = model_of(work).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, weight_decay=0.0)
    dialogues = work.dialogues()
    parts = [dialogues[i : i + batch] for i in range(0, len(dialogues), batch)]
    learned = sum(sum(mask[1:]) for _, mask in dialogues)

    def job() -> dict[str, Any]:
        for part in parts:
            width = max(len(ids) for ids, _ in part)
            ids = torch.tensor([row + [0] * (width - len(row)) for row, _ in part])
            seen = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row, _ in part])
            labels = torch.full_like(ids, -100)
            for at, (row, mask) in enumerate(part):
                chosen = torch.tensor(mask)
                labels[at, : len(row)][chosen] = ids[at, : len(row)][chosen]
            loss = model(
                input_ids=ids, attention_mask=seen, labels=labels, num_items_in_batch=learned
            ).loss
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        return {"tokens": sum(len(ids) for ids, _ in dialogues)}

    return job
