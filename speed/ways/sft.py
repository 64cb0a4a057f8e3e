"""Updates of progrl's own training."""

from typing import Any

from progrl.training.batching import Example, microbatches
from progrl.training.optimiser import Optimiser
from progrl.training.scoring import Arithmetic
from speed.ways.ours import model_of
from speed.worker import Job
from speed.workload import Workload


def train(work: Workload, budget: int = 8192, compile: bool = False) -> Job:
    """One update over all dialogues, as the stages sft and grpo make it.

    Args:
        budget: padded tokens in a forward pass; by default sft's of the default job.
        compile: use the kernels.
    """
    optimiser = Optimiser(model_of(work).train(), 1e-6, 0.0, 1.0, Arithmetic(kernels=compile))
    examples = [Example(ids, mask) for ids, mask in work.dialogues()]
    learned = sum(example.learned for example in examples)

    def job() -> dict[str, Any]:
        for micro in microbatches(examples, budget):
            optimiser.backward(-optimiser.scorer(micro.inputs).sum() / learned)
        optimiser.step(1.0)
        return {"tokens": sum(len(example.ids) for example in examples)}

    return job
