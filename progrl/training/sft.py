"""The supervised warm start.

A new model first learns to copy (random sequences, repeated: attention finds the way back to what
stood before), then learns from the best-ranked dialogues.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from progrl.config.training import Constant, CopyWarmup, Schedule, SftConfig
from progrl.ranks import ALONE, Ranks
from progrl.seeds import Seed
from progrl.training.batching import Example, microbatches
from progrl.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from progrl.training.optimiser import Optimiser
from progrl.training.schedule import rate
from progrl.training.scoring import TORCH, Arithmetic

Row = dict[str, float | int | str | None]
LOG_EVERY = 10
COPY_LENGTHS = (8, 24)
COPY_RATE = Constant(kind="constant", warmup=0.1)


@dataclass
class SftTrainer:
    """Trains `model` in place; killed anywhere and started again, it ends with the same weights.

    Attributes:
        examples: training dialogues.
        validation: dialogues of other tasks, for the validation loss.
        vocabulary: ids from which copy sequences are drawn: [first, last).
        folder: of the checkpoints.
        record: told each logged row.
        progress: told steps done, steps in all, and a line of text.
        arithmetic: how the layers are computed.
        ranks: the processes that train it together.
    """

    model: Any
    examples: Sequence[Example]
    validation: Sequence[Example]
    config: SftConfig
    vocabulary: tuple[int, int]
    seed: Seed
    folder: Path
    record: Callable[[Row], None]
    progress: Callable[[int, int, str], None]
    arithmetic: Arithmetic = TORCH
    ranks: Ranks = ALONE
    rows: list[Row] = field(default_factory=list)

    @property
    def copy_steps(self) -> int:
        """Steps of the copy warm-up."""
        return self.config.warmup.steps if isinstance(self.config.warmup, CopyWarmup) else 0

    def run(self) -> list[Row]:
        """Train to the end; the logged rows."""
        total = self.copy_steps + self.config.steps
        optimiser = self._optimiser()
        step = 0
        checkpoint = load_checkpoint(self.folder)
        if checkpoint is not None:
            step, self.rows = checkpoint.step, list(checkpoint.state["rows"])
            optimiser.load_tensors(checkpoint.tensors)
        self.model.train()
        while step < total:
            if step == self.copy_steps:
                optimiser = self._optimiser()
            row = self._copy(optimiser, step) if step < self.copy_steps else None
            row = row or self._learn(optimiser, step - self.copy_steps)
            step += 1
            if step % self.config.checkpoint_every == 0 or step == total:
                row["validation_loss"] = self.validation_loss(optimiser)
            if step % LOG_EVERY == 0 or step == total:
                row["step"] = step
                self.rows.append(row)
                self.record(row)
            if step % self.config.checkpoint_every == 0:
                tensors = optimiser.tensors()
                if self.ranks.leads:
                    save_checkpoint(self.folder, Checkpoint(step, tensors, {"rows": self.rows}))
            self.progress(step, total, f"{row['phase']} loss {row['loss']:.3f}")
        self.model.eval()
        return self.rows

    def _optimiser(self) -> Optimiser:
        config = self.config
        return Optimiser(
            self.model,
            config.learning_rate,
            config.weight_decay,
            config.max_grad_norm,
            self.arithmetic,
            self.ranks,
        )

    def _copy(self, optimiser: Optimiser, step: int) -> Row:
        warmup = self.config.warmup
        assert isinstance(warmup, CopyWarmup)
        random = self.seed.child("copy", step).random()
        examples = []
        for _ in range(warmup.batch):
            once = [
                random.randrange(*self.vocabulary) for _ in range(random.randint(*COPY_LENGTHS))
            ]
            ids = once + once + once[: len(once) // 2]
            examples.append(Example(ids, [i >= len(once) for i in range(len(ids))]))
        return self._update(optimiser, examples, COPY_RATE, step, warmup.steps, "copy")

    def _learn(self, optimiser: Optimiser, step: int) -> Row:
        size = min(self.config.batch, len(self.examples))
        per_epoch = len(self.examples) // size
        epoch, at = divmod(step, per_epoch)
        order = list(range(len(self.examples)))
        self.seed.child("epoch", epoch).random().shuffle(order)
        batch = [self.examples[i] for i in order[at * size : (at + 1) * size]]
        schedule = self.config.schedule
        return self._update(optimiser, batch, schedule, step, self.config.steps, "sft")

    def _update(
        self,
        optimiser: Optimiser,
        batch: Sequence[Example],
        schedule: Schedule,
        step: int,
        steps: int,
        phase: str,
    ) -> Row:
        tokens = sum(example.learned for example in batch)
        total = 0.0
        for micro in microbatches(batch, self.config.tokens_per_microbatch, ranks=self.ranks):
            logprobs = optimiser.scorer(micro.inputs)
            loss = -logprobs.sum() / tokens
            optimiser.backward(loss)
            total += loss.item()
        (total,) = self.ranks.total([total])
        share = rate(schedule, step, steps)
        norm = optimiser.step(share)
        return {
            "step": step,
            "phase": phase,
            "loss": total,
            "learning_rate": share * self.config.learning_rate,
            "gradient_norm": norm,
        }

    def validation_loss(self, optimiser: Optimiser) -> float | None:
        """Mean negative log-probability (nats a token) over the validation dialogues."""
        tokens = sum(example.learned for example in self.validation)
        if not tokens:
            return None
        total, budget = 0.0, self.config.tokens_per_microbatch
        with torch.no_grad():
            for micro in microbatches(self.validation, budget, ranks=self.ranks):
                logprobs = optimiser.scorer(micro.inputs)
                total -= logprobs.sum().item()
        return self.ranks.total([total])[0] / tokens
