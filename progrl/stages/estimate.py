"""What a run will take, before it starts: bytes from shapes alone, hours from a short trial.

Bytes are those of the largest moment of training: weights, gradients, optimiser and activations,
with the engine's copy and its cache beside them. Hours are tokens, as the configuration and a few
expert dialogues give them, over tokens a second, as this machine computes them now.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psutil

from progrl.agent.shape import Shape, shape_of
from progrl.agent.threads import threads_of
from progrl.config import Config
from progrl.config.agent import EmbeddedAgent, LoraTuning, VllmEngine
from progrl.config.load import lay_over
from progrl.config.training import CopyWarmup
from progrl.stages.base import Context, find_stage

if TYPE_CHECKING:
    from progrl.agent.engines.contracts import Engine
    from progrl.training.batching import Example

_WIDTH = {"float32": 4, "bfloat16": 2}
_PROGRAM = 600 * 2**20
"""Bytes of Python with its libraries, as measured where nothing is loaded yet."""
_COPY_TOKENS = 40
"""Mean tokens of a sequence of the copy warm-up."""
_MODELS = 3
"""Agents that evaluation samples from."""
_SECONDS = 3.0
"""Least seconds of each of the two trials."""
_TRIAL: Mapping[str, Any] = {
    "embedding": {"kind": "hashed"},
    "generate": {
        "train_tasks": 24,
        "validation_tasks": 4,
        "test_tasks": 2,
        "dialogues": 24,
        "responses": 60,
        "pool": 120,
    },
    "sft": {"dialogues": 8},
    "grpo": {"probe_tasks": 1},
    "tracking": {"kind": "none"},
}


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one process at the most, and in all processes.

    The local engine's cache is counted with full windows. A vLLM server takes the share of its
    device that `engine.memory` says, for weights and cache, and is no part of this.
    """

    weights: int
    gradients: int
    optimiser: int
    activations: int
    engine_weights: int
    engine_cache: int
    program: int
    processes: int

    @property
    def process(self) -> int:
        """Bytes of one process."""
        trained = self.weights + self.gradients + self.optimiser + self.activations
        return trained + self.engine_weights + self.engine_cache + self.program

    @property
    def total(self) -> int:
        """Bytes of all processes."""
        return self.processes * self.process


@dataclass(frozen=True, slots=True)
class Rates:
    """What a trial measured.

    Attributes:
        dialogue: mean tokens of an expert's dialogue.
        training, rollout: tokens a second of one process.
    """

    dialogue: float
    training: float
    rollout: float


def memory_of(config: Config, shape: Shape) -> Memory:
    """Bytes by part, from shapes alone."""
    agent, engine = config.agent, config.engine
    trained = shape.trained(agent)
    frozen = shape.weights if isinstance(agent.tuning, LoraTuning) else 0
    whole = trained if frozen else shape.weights
    kept = frozen * _WIDTH[agent.dtype] + whole * 4
    rows = max(config.sft.tokens_per_microbatch, config.grpo.tokens_per_microbatch)
    tokens = max(rows, agent.window)
    copies = 2 if config.grpo.kl else 1  # with a penalty, the model that GRPO started from
    cache = 2 * shape.layers * shape.kv_heads * shape.head_dim * _WIDTH[engine.dtype]
    local = engine.kind == "local"
    return Memory(
        weights=copies * kept,
        gradients=4 * trained,
        optimiser=8 * trained,
        activations=_activations(shape, tokens, _WIDTH[agent.dtype], agent.checkpointing),
        engine_weights=shape.weights * _WIDTH[engine.dtype] * local,
        engine_cache=engine.slots * agent.window * cache * local,
        program=_PROGRAM,
        processes=config.processes,
    )


def _activations(shape: Shape, tokens: int, width: int, checkpointing: bool) -> int:
    """Bytes kept for the backward pass over `tokens` tokens, and those of the logits of a chunk.

    Norms keep 4 vectors of the residual stream in float32 a layer, and matrices their inputs;
    rotary positions and norms on heads keep 4 of queries and keys; attention keeps its inputs and
    output; the gated layer 4 vectors of its width.
    """
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layer = (
        4 * shape.hidden * 4
        + (2 * shape.hidden + 4 * (queries + keys) + 2 * queries + 2 * keys + 4 * shape.ffn) * width
    )
    held = shape.layers * 4 * shape.hidden + layer if checkpointing else shape.layers * layer
    logits = 3 * min(tokens, 4096) * shape.vocabulary * 4
    return tokens * held + logits


def time_of(config: Config, rates: Rates) -> dict[str, float]:
    """Seconds by stage; episodes are taken to be as long as an expert's."""
    sft, grpo, trained = config.sft, config.grpo, len(config.domains.train)
    share = config.processes
    warmup = sft.warmup
    copied = warmup.steps * warmup.batch * _COPY_TOKENS if isinstance(warmup, CopyWarmup) else 0
    learned = sft.steps * sft.batch * rates.dialogue
    played = grpo.tasks * grpo.group * rates.dialogue
    probes = (1 + grpo.steps // grpo.probe_every) * grpo.probe_tasks * rates.dialogue
    tests = config.generate.test_tasks * (trained + len(config.domains.held_out))
    measured = tests * config.evaluation.trials * _MODELS * rates.dialogue
    return {
        "sft": (copied + learned) / rates.training / share,
        "grpo": (
            grpo.steps * played * (1 / rates.rollout + 1 / rates.training) + probes / rates.rollout
        )
        / share,
        "evaluate": measured / rates.rollout / share,
    }


def estimate(config: Config, project: Path, trial: bool = True) -> dict[str, Any]:
    """Memory and time as one record; None, with a reason in `unknown`, for what cannot be told.

    Args:
        project: folder that paths in the configuration are relative to.
        trial: compute for some seconds, to learn how fast this machine is.

    Raises:
        DataError: the model folder's config.json cannot be used.
    """
    shape = shape_of(config.agent, project)
    unknown = {}
    if shape is None:
        unknown["memory"] = "no config.json in agent.folder, and its name is of no known model"
    memory = memory_of(config, shape) if shape is not None else None
    if isinstance(config.engine, VllmEngine):
        unknown["memory of the engine"] = (
            f"vLLM's server takes {config.engine.memory:.0%} of its device"
            + (", and lets go of it during updates" if config.engine.sleep else "")
        )
    rates: Rates | None = None
    if not trial:
        unknown["time"] = "no trial was asked for"
    elif (
        not isinstance(config.agent, EmbeddedAgent)
        and not (project / config.agent.folder / "config.json").is_file()
    ):
        unknown["time"] = "agent.folder is not there, so nothing can be tried"
    elif config.engine.kind != "local":
        unknown["time"] = "the trial is of the local engine"
    else:
        config = config.model_copy(update={"threads": threads_of(config, project)})
        rates = measure(config, project)
    return {
        "threads": config.threads,
        "model": {"weights": shape.weights, "trained": shape.trained(config.agent)}
        if shape
        else None,
        "memory": _told(memory) if memory else None,
        "tokens": _tokens(config, rates),
        "rates": {n: getattr(rates, n) for n in Rates.__slots__} if rates else None,
        "seconds": time_of(config, rates) if rates else None,
        "unknown": unknown,
    }


def too_large(config: Config, project: Path) -> str | None:
    """What to tell before a run that needs more memory than is there; None where it fits.

    Each process has a GPU of its own, where there are any; else all share the machine's memory.
    """
    shape = shape_of(config.agent, project)
    if shape is None:
        return None
    memory = memory_of(config, shape)
    import torch

    if torch.cuda.is_available():
        needed, there, where = memory.process, torch.cuda.mem_get_info()[0], "are free on the GPU"
    else:
        needed, there, where = memory.total, psutil.virtual_memory().available, "are free"
    if needed <= there:
        return None
    return (
        f"This run takes about {_gib(needed)} of memory at its height, and {_gib(there)} {where}: "
        f"weights {_gib(memory.weights)}, gradients and optimiser "
        f"{_gib(memory.gradients + memory.optimiser)}, activations {_gib(memory.activations)}, "
        f"engine {_gib(memory.engine_weights + memory.engine_cache)}, in each of "
        f"{memory.processes} processes. `progrl estimate` tells more."
    )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _told(memory: Memory) -> dict[str, int]:
    parts = {name: getattr(memory, name) for name in Memory.__slots__}
    return {**parts, "process": memory.process, "total": memory.total}


def _tokens(config: Config, rates: Rates | None) -> dict[str, float]:
    """Tokens a step: at most by the configuration, and as expected where dialogues were tried."""
    episodes = config.grpo.tasks * config.grpo.group
    told: dict[str, float] = {
        "sft_step_at_most": config.sft.batch * config.agent.window,
        "grpo_step_at_most": episodes * config.agent.window,
    }
    if rates is None:
        return told
    expected = {
        "sft_step": config.sft.batch * rates.dialogue,
        "grpo_step": episodes * rates.dialogue,
    }
    return {**told, **expected}


def measure(config: Config, project: Path) -> Rates:
    """Tokens a second, from a few expert dialogues that are learned and played again."""
    from progrl.agent.model import prepare_training
    from progrl.dialogue.tasks import read_tasks
    from progrl.seeds import Seed
    from progrl.stages.parts import domains_of, engine_of, set_threads, tasks_file
    from progrl.stages.sft import agent_of, dialogues_of, encode

    small = lay_over(config, _TRIAL, "a trial")
    set_threads(config, project)
    with TemporaryDirectory(prefix="progrl-trial-") as name:
        root = Path(name)
        context = Context(small, root, project, root / "runs")
        find_stage("generate").run(context)
        tasks = [
            task
            for domain in small.domains.train
            for task in read_tasks(tasks_file(root, domain, "train"))
        ]
        dialogues = dialogues_of(context, "train", tasks)
        domains = domains_of(small)
        model, codec = agent_of(context, dialogues, domains, Seed.root(small.seed))
    told = [encode(d, codec, domains[d.domain]) for d in dialogues]
    told = [e for e in told if len(e.ids) <= config.agent.window]
    rollout = _rollout_rate(config, engine_of(config, model, project), told)
    prepare_training(model, config.agent, 0)
    return Rates(fmean(len(e.ids) for e in told), _training_rate(config, model, told), rollout)


def _rollout_rate(config: Config, engine: "Engine", dialogues: "Sequence[Example]") -> float:
    """Tokens a second where as many conversations as are in flight are read and sampled anew.

    The agent's messages are sampled as long as the expert's were; what comes is no matter.
    """
    import asyncio

    from progrl.agent.engines.contracts import SamplingParams

    episodes = min(config.engine.slots, config.grpo.tasks * config.grpo.group)
    counted = 0

    async def talk(number: int) -> None:
        nonlocal counted
        conversation = engine.open()
        turns = _turns(dialogues[number % len(dialogues)])
        for turn, (read, sampled) in enumerate(turns):
            conversation.extend(read)
            params = SamplingParams(1.0, sampled, frozenset(), 1000 * number + turn)
            sample = await conversation.sample(params)
            counted += len(read) + len(sample.ids)  # not before others have had their turn
        conversation.close()

    async def talks() -> None:
        await asyncio.gather(*(talk(number) for number in range(episodes)))

    start = time.perf_counter()
    while time.perf_counter() - start < _SECONDS:
        asyncio.run(talks())
    return counted / (time.perf_counter() - start)


def _turns(dialogue: "Example") -> list[tuple[list[int], int]]:
    """What is read before each message, and how many tokens the message has."""
    turns: list[tuple[list[int], int]] = []
    read: list[int] = []
    count = 0
    for token, learned in zip(dialogue.ids, dialogue.mask, strict=True):
        if learned:
            count += 1
        elif count:
            turns.append((read, count))
            read, count = [token], 0
        else:
            read.append(token)
    return [*turns, (read, count)] if count else turns


def _training_rate(config: Config, model: Any, dialogues: "Sequence[Example]") -> float:
    """Tokens a second of forward and backward passes, with an update for each batch."""
    from progrl.training.batching import microbatches
    from progrl.training.optimiser import Optimiser
    from progrl.training.scoring import Arithmetic

    optimiser = Optimiser(model, 1e-9, 0.0, 1.0, Arithmetic.of(config.agent))
    batch = [dialogues[i % len(dialogues)] for i in range(config.sft.batch)]
    counted, start = 0, time.perf_counter()
    while time.perf_counter() - start < _SECONDS:
        for micro in microbatches(batch, config.sft.tokens_per_microbatch):
            optimiser.backward(-optimiser.scorer(micro.inputs).mean())
        optimiser.step(1.0)
        counted += sum(len(e.ids) for e in batch)
    return counted / (time.perf_counter() - start)
