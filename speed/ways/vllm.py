"""vLLM in process, with its prefix cache; imports nothing of progrl, runs in `.venv-vllm`."""

import os
from tempfile import mkdtemp
from typing import Any

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # the engine is timed, not its pipes
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

from vllm import LLM, SamplingParams

from speed.ways.hf import model_of
from speed.worker import Job
from speed.workload import Workload


def rollout(work: Workload) -> Job:
    """All conversations as one batch a turn; what was read before comes from the prefix cache."""
    folder = mkdtemp(prefix="progrl-speed-")
    model_of(work).save_pretrained(folder)
    engine = LLM(
        model=folder,
        skip_tokenizer_init=True,
        dtype="float32",
        enforce_eager=True,
        block_size=32,
        enable_prefix_caching=True,
        max_model_len=work.window,
        max_num_seqs=work.conversations,
        seed=1,
    )
    params = SamplingParams(
        temperature=1.0,
        max_tokens=work.sampled,
        min_tokens=work.sampled,
        ignore_eos=True,
        detokenize=False,
        logprobs=0,
    )
    contexts = work.contexts()

    def job() -> dict[str, Any]:
        engine.reset_prefix_cache()
        conversations: list[list[int]] = [[] for _ in contexts]
        for turn in range(work.turns):
            for ids, read in zip(conversations, contexts, strict=True):
                ids += read[turn]
            prompts = [{"prompt_token_ids": ids} for ids in conversations]
            results = engine.generate(prompts, params, use_tqdm=False)
            for ids, result in zip(conversations, results, strict=True):
                ids += result.outputs[0].token_ids
        if any(len(ids) != work.length for ids in conversations):
            raise RuntimeError("vLLM sampled other numbers of ids than it was asked for")
        return {"tokens": work.tokens}

    return job
