"""The engine behind HTTP: a vLLM server in an environment of its own, started and ended with us.

Token ids go in and come out. The server reads the whole conversation with every message; its
prefix cache spares it what it has read before. New weights are written to a folder that the server
reads, and then the cache, which is of the old ones, is emptied.
"""

import asyncio
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.engines.conversation import BaseConversation
from progrl.agent.engines.vllm_process import HOST, START, Server
from progrl.agent.model import load_model
from progrl.config.agent import Dtype
from progrl.errors import ConfigurationError, EngineFault
from progrl.files import write_json

ENVIRONMENT = ".venv-vllm"
_HEADS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Widths of heads that the CPU build computes with; others it refuses at the first token."""
_NAME = "policy"


class VllmConversation(BaseConversation):
    """A conversation of a VllmEngine."""

    def __init__(self, engine: "VllmEngine") -> None:
        super().__init__(engine.vocabulary, engine.window)
        self._engine = engine

    async def _sample(self, params: SamplingParams, room: int) -> Sample:
        return await self._engine.complete(self.ids, params, room)


class VllmEngine:
    """Samples from a model in a vLLM server.

    Args:
        model: whose weights the server gets; on loopback, for it trusts whoever reaches it.
        project: folder that holds `.venv-vllm`.
        slots: conversations sampled at once.
        window: most tokens of a conversation.
        dtype: of weights and cache.
        memory: share of the GPU's memory that the server takes; without a GPU, the share of the
            free memory that its cache takes.
        threads: of the server, without a GPU.
        sleep: `rest` lets the GPU's memory go until there are new weights.

    Raises:
        ConfigurationError: the environment is not there, or cannot compute with such a model.
        EngineFault: the server does not start.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        project: Path,
        slots: int,
        window: int,
        dtype: Dtype,
        memory: float,
        threads: int = 1,
        sleep: bool = False,
    ) -> None:
        python = _python(project)
        _check_heads(model.config)
        self.window, self.dtype = window, dtype
        self.vocabulary: int = model.config.vocab_size
        self._shape = _shape(model)
        self._flying = 0
        self._sleeps, self._asleep = sleep, False
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="vllm")
        self._folder = Path(tempfile.mkdtemp(prefix="progrl-vllm-"))
        _write(self._folder / "model", model, dtype)
        options = _options(self._folder / "model", slots, window, dtype, memory)
        options += ["--enable-sleep-mode"] * (sleep and torch.cuda.is_available())
        self._server = Server(python, self._folder / "log", options, threads)
        self._stop = weakref.finalize(self, _end, self._server, self._pool, self._folder)
        self._server.wait(START)

    def open(self) -> VllmConversation:
        """A new, empty conversation."""
        return VllmConversation(self)

    def close(self) -> None:
        """End the server; idempotent, and done when the engine is forgotten or Python ends."""
        self._stop()

    def load_weights(self, folder: Path) -> None:
        """Replace the weights by those of a model folder; the prefix cache is emptied.

        Raises:
            CheckpointError: the folder is incomplete or damaged.
            EngineFault: samples are in flight, or the model is of another shape.
        """
        self.set_weights_from(load_model(folder, self.dtype))

    def set_weights_from(self, model: PreTrainedModel) -> None:
        """Replace the weights by a copy of a live model's; the prefix cache is emptied.

        Raises:
            EngineFault: samples are in flight, or the model is of another shape.
        """
        if self._flying:
            raise EngineFault("Weights cannot be replaced while samples are in flight.")
        if _shape(model) != self._shape:
            raise EngineFault("A model of another shape cannot take this one's place.")
        fresh = self._folder / "model"
        shutil.rmtree(fresh)
        _write(fresh, model, self.dtype)
        call = {
            "method": "reload_weights",
            "kwargs": {"weights_path": str(fresh)},
            "timeout": START,
        }
        if self._asleep:  # weights first: the cache's memory is taken when theirs is as it will be
            self._server.post("/wake_up?tags=weights")
        self._server.post("/pause")
        self._server.post("/collective_rpc", call)
        if self._asleep:
            self._server.post("/wake_up?tags=kv_cache")
        self._asleep = False
        self._server.post("/reset_prefix_cache")
        self._server.post("/resume")

    def rest(self) -> None:
        """Let go of weights and cache until new weights come, where that was asked for.

        Raises:
            EngineFault: samples are in flight.
        """
        if self._flying:
            raise EngineFault("A server cannot sleep while samples are in flight.")
        if self._sleeps and not self._asleep:
            self._server.post("/sleep?level=2")
            self._asleep = True

    async def complete(self, ids: Sequence[int], params: SamplingParams, room: int) -> Sample:
        """Sample a message at the end of `ids`, in at most `room` tokens.

        Raises:
            EngineFault: the server failed.
        """
        if self._asleep:
            raise EngineFault("The server sleeps: it samples again when it has new weights.")
        loop = asyncio.get_running_loop()
        self._flying += 1
        try:
            return await loop.run_in_executor(self._pool, self._sampled, list(ids), params, room)
        finally:
            self._flying -= 1

    def _sampled(self, ids: list[int], params: SamplingParams, room: int) -> Sample:
        limit = min(params.max_tokens, room)
        chosen: list[int] = []
        logprobs: list[float] = []
        stopped = False
        if params.bias:  # which the server would add to every token's logits
            stopped = self._ask(ids, params, 1, chosen, logprobs)
        if not stopped and len(chosen) < limit:
            stopped = self._ask(ids, params, limit - len(chosen), chosen, logprobs)
        if stopped:
            return Sample(chosen, logprobs, "stop")
        return Sample(chosen, logprobs, "window" if room < params.max_tokens else "length")

    def _ask(
        self,
        ids: list[int],
        params: SamplingParams,
        limit: int,
        chosen: list[int],
        logprobs: list[float],
    ) -> bool:
        """Append to `chosen` and `logprobs`; whether a stop token came."""
        first = params.bias and not chosen
        answer = self._server.post(
            "/v1/completions",
            {
                "model": _NAME,
                "prompt": ids + chosen,
                "max_tokens": limit,
                "temperature": params.temperature,
                "seed": (params.seed + len(chosen)) % 2**63,
                "stop_token_ids": sorted(params.stop_ids),
                "ignore_eos": True,
                "logprobs": 0,
                "return_token_ids": True,
                "return_tokens_as_token_ids": True,  # there is no tokenizer
                **({"logit_bias": {str(t): b for t, b in params.bias}} if first else {}),
            },
        )
        try:
            (choice,) = answer["choices"]
            fresh = list(choice["token_ids"])
            told = list(choice["logprobs"]["token_logprobs"])
        except (KeyError, TypeError, ValueError) as error:
            raise EngineFault(f"vLLM's server gave an answer that is none ({error!r}).") from None
        if not fresh or len(fresh) != len(told):
            raise EngineFault(f"vLLM's server gave {len(fresh)} ids, {len(told)} probabilities.")
        chosen += fresh
        logprobs += told
        return fresh[-1] in params.stop_ids


def _end(server: Server, pool: ThreadPoolExecutor, folder: Path) -> None:
    server.end()
    pool.shutdown(wait=False, cancel_futures=True)
    shutil.rmtree(folder, ignore_errors=True)


def _python(project: Path) -> Path:
    python = project / ENVIRONMENT / "bin" / "python"
    if not python.exists():
        raise ConfigurationError(
            f"engine.kind: vllm runs in an environment of its own, and {project / ENVIRONMENT} is "
            "not there: run `make setup-vllm`, or set engine.kind=local."
        )
    return python.absolute()


def _check_heads(config: Any) -> None:
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if width not in _HEADS and not torch.cuda.is_available():
        raise ConfigurationError(
            f"engine.kind: vllm takes heads of {', '.join(map(str, _HEADS))} numbers on a CPU, and "
            f"this model's have {width}. Set engine.kind=local, or agent.head_dim where the model "
            "is made here."
        )


def _options(folder: Path, slots: int, window: int, dtype: Dtype, memory: float) -> list[str]:
    options = {
        "--model": str(folder),
        "--served-model-name": _NAME,
        "--host": HOST,
        "--dtype": dtype,
        "--max-model-len": str(window),
        "--max-num-seqs": str(slots),
        "--logprobs-mode": "processed_logprobs",
        "--generation-config": "vllm",
    }
    flags = ["--skip-tokenizer-init", "--enable-prefix-caching"]
    if torch.cuda.is_available():
        options["--gpu-memory-utilization"] = str(memory)
    else:
        free = psutil.virtual_memory().available
        options |= {"--kv-cache-memory-bytes": str(int(free * memory)), "--block-size": "32"}
        flags.append("--enforce-eager")
    return [part for pair in options.items() for part in pair] + flags


def _shape(model: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, tuple(p.shape)) for name, p in model.named_parameters()]


def _write(folder: Path, model: Any, dtype: Dtype) -> None:
    """Weights and config.json, with an output head of its own: what is tied, the CPU build keeps
    packed apart, and would go on using after a reload."""
    folder.mkdir()
    tensors = {
        name: tensor.detach().to("cpu", getattr(torch, dtype), copy=True).contiguous()
        for name, tensor in model.state_dict().items()
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    told = model.config.to_dict() | {"tie_word_embeddings": False, "dtype": dtype}
    write_json(folder / "config.json", told | {"architectures": [type(model).__name__]})
