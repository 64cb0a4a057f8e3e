"""A small tokenizer and chat templates of several manners, written for the tests."""

from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SEPARATED = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}"""
"""Any role, a newline after each end: SmolLM2's manner."""

THOUGHTFUL = """\
{%- set ns = namespace(last=0) -%}
{%- for message in messages -%}
{%- if message.role == 'user' %}{% set ns.last = loop.index0 %}{% endif -%}
{%- endfor -%}
{%- if tools -%}
<|im_start|>system
{{ messages[0].content if messages[0].role == 'system' }}
Tools:{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
Answer with <tool_call>{...}</tool_call>.<|im_end|>
{% endif -%}
{%- for message in messages -%}
{%- if message.role == 'system' and tools -%}
{%- elif message.role == 'tool' -%}
<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.role == 'assistant' -%}
<|im_start|>assistant
{% if loop.index0 > ns.last %}{{ message.content }}
{%- else %}{{ message.content.split('</think>')[-1].lstrip('\n') }}{% endif %}<|im_end|>
{% elif message.role in ('user', 'system') -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% else %}{{ raise_exception('unknown role') }}{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}"""
"""Tools and a tool role, thoughts of earlier turns dropped: Qwen3's manner."""

BARE = """\
{{- bos_token -}}
{%- for message in messages -%}
{%- if message.role == 'user' -%}[INST] {{ message.content | trim }} [/INST]
{%- elif message.role == 'assistant' %} {{ message.content | trim }}{{ eos_token }}
{%- else -%}{{ raise_exception('only user and assistant') }}
{%- endif -%}
{%- endfor -%}"""
"""No system role, no tool role, no separators, no generation prompt: Mistral's first manner."""

DATED = """\
{%- for message in messages -%}
{%- if loop.first %}<|im_start|>system
Today is {{ strftime_now('%d %B %Y') }}.<|im_end|>{% endif -%}
<|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
<think>
{% endif -%}"""
"""Writes the date, trims, and opens a thought for the agent."""

TEMPLATES = {"separated": SEPARATED, "thoughtful": THOUGHTFUL, "bare": BARE, "dated": DATED}
_TEXTS = ["please cancel my order", "the user said hello", '{"name": "look", "arguments": {}}']


def chat_tokenizer(template: str | None) -> Any:
    """A byte-level tokenizer of some 300 tokens with chat markers and `template`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(_TEXTS * 3, trainer)
    special = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    tokenizer.add_tokens(["<think>", "</think>", "<tool_call>", "</tool_call>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>" if template == BARE else "<|im_end|>",
        pad_token="</s>",
        chat_template=template,
    )
