"""A real small model behind the protocol: SmolLM2-135M, where it has been fetched."""

import threading
from pathlib import Path
from typing import Any

import pytest

from progrl.agent.seats import ExpertAgent
from progrl.dialogue.trajectories import record
from progrl.users.llm import LlmUser
from tests.rollout.desk import specs, tasks, world
from tests.users.llm_server import Server, serving, settings

MODEL = Path(__file__).parents[2] / ".cache" / "models" / "smollm"


@pytest.mark.slow
@pytest.mark.skipif(not MODEL.exists(), reason="run `progrl models fetch smollm` first")
def test_a_small_local_model_is_the_user(tmp_path: Path) -> None:
    """So small a model keeps no form for long: each episode ends well or is marked, and rerun."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.bfloat16)
    one, wrote = threading.Lock(), []

    def reply(body: dict[str, Any]) -> str:
        text = tokenizer.apply_chat_template(
            body["messages"], add_generation_prompt=True, tokenize=False
        )
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)
        with one, torch.inference_mode():
            made = model.generate(**ids, max_new_tokens=body["max_tokens"], do_sample=False)
        content = tokenizer.decode(made[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
        wrote.append(content)
        return str(content)

    server, given = Server(reply), specs([t for t in tasks(24) if t.level > 1][:2], horizon=4)
    with serving(server):
        user = LlmUser(
            settings(server.base_url, max_tokens=40, timeout=60.0, temperature=0.0), tmp_path
        )
        played = world(user=user).play(given, ExpertAgent())
        again = world(user=user).play(given, ExpertAgent())
        user.close()
    spent = user.spent()
    assert spent["requests"] == len(server.asked) == len(wrote) > 0
    assert all(wrote)
    assert spent["lost"] == 0
    assert sum(not t.valid for t in played) == spent["given_up"] / 2
    assert all(t.valid or "cannot be used" in t.fault for t in played)
    assert [record(t) for t in again] == [record(t) for t in played]
