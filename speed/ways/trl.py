"""Whole steps of TRL's GRPOTrainer with a tool; imports nothing of progrl, runs in `.venv-speed`.

The same model, number of episodes, groups, turns and ids as `ways.step`: every message is taken for
a call of the tool, whose answer is `read` ids long; after the last turn the loop stops.
"""

from random import Random
from tempfile import mkdtemp
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from speed.turnstile import Turnstile
from speed.ways.hf import model_of
from speed.worker import Job
from speed.workload import FIRST, Workload

# The end of a message stands between it and the tool's answer, as in chat templates: it is one id
# more a turn than the workload has.
TEMPLATE = (
    "{% for m in messages %}{{ m.content }} "
    "{% for c in m.tool_calls or [] %}{{ c.function.name }} {{ c.function.arguments | tojson }} "
    "{% endfor %}{% if m.role == 'assistant' %}<end> {% endif %}{% endfor %}"
)


class Words(PreTrainedTokenizerFast):
    """Ids as the words `w8`, `w9` and so on; every response is a call of the tool `look`."""

    def parse_response(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """A call without arguments."""
        call = {"type": "function", "function": {"name": "look", "arguments": {}}}
        return {"role": "assistant", "content": "", "tool_calls": [call]}


def tokenizer_of(work: Workload) -> Words:
    """A word an id."""
    special = ["<pad>", "<end>", "<unk>"]
    words = special + [f"w{i}" for i in range(len(special), work.shape.vocabulary)]
    inner = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    tokenizer = Words(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<end>", unk_token="<unk>"
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.response_template = {}  # says that it can parse responses
    return tokenizer


def _words(work: Workload, random: Random) -> str:
    return " ".join(f"w{random.randrange(FIRST, work.shape.vocabulary)}" for _ in range(work.read))


class _Steps(TrainerCallback):
    def __init__(self, turnstile: Turnstile) -> None:
        self._turnstile = turnstile

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        """Wait to be told."""
        self._turnstile.wait()


def _arguments(work: Workload, batch: int) -> GRPOConfig:
    return GRPOConfig(
        output_dir=mkdtemp(prefix="progrl-speed-"),
        use_cpu=True,
        bf16=False,
        fp16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=work.conversations // batch,
        num_generations=work.group,
        max_completion_length=work.length + 2 * work.turns,
        max_tool_calling_iterations=work.turns - 1,
        generation_kwargs={"max_new_tokens": work.sampled, "min_new_tokens": work.sampled},
        top_k=0,
        learning_rate=1e-6,
        max_steps=1_000_000,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def grpo(work: Workload, batch: int) -> Job:
    """Steps of GRPOTrainer with what makes it fast here: float32, no recomputation.

    Args:
        batch: episodes in a forward pass of the update.
    """
    random, prompts = Random(1), Random(2)

    def look() -> str:
        """Looks."""
        return _words(work, random)

    def reward(completions: list[Any], **kwargs: Any) -> list[float]:
        return [float(random.random() < 0.5) for _ in completions]

    turnstile = Turnstile()
    rows = [
        {"prompt": [{"role": "user", "content": _words(work, prompts)}]}
        for _ in range(50 * work.conversations // work.group)
    ]
    trainer = GRPOTrainer(
        model=model_of(work),
        reward_funcs=reward,
        args=_arguments(work, batch),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer_of(work),
        tools=[look],
        callbacks=[_Steps(turnstile)],
    )
    threads = torch.get_num_threads()

    def train() -> None:
        torch.set_num_threads(threads)  # in the thread that trains
        trainer.train()

    turnstile.start(train)

    def job() -> dict[str, Any]:
        turnstile.step()
        told = trainer._metrics["train"]
        turns = 1 + told["tools/call_frequency"][-1]
        return {"length": told["completions/mean_length"][-1], "turns": turns}

    return job
