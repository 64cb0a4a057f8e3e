"""Who is measured: at least those that the report, the sweeps and the gate rest on."""

from pathlib import Path

import pytest

from progrl.config import load_config
from progrl.config.models import AGENTS
from progrl.errors import ConfigurationError

PARAMS = Path(__file__).parents[2] / "params.yaml"


def test_random_may_be_added() -> None:
    assert load_config(PARAMS).evaluation.agents == AGENTS
    made = load_config(PARAMS, "gyms").evaluation.agents
    assert set(made) == {*AGENTS, "random"}


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ("[do_nothing, expert, untrained, sft]", "grpo cannot be left out"),
        ("[do_nothing, expert, untrained, sft, grpo, grpo]", "more than once"),
        ("[do_nothing, expert, untrained, sft, grpo, human]", "evaluation.agents"),
    ],
)
def test_others_are_refused(agents: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_config(PARAMS, overrides=[f"evaluation.agents={agents}"])
