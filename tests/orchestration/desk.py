"""Real dialogues of the retail desk, and a small tool policy's configuration."""

from functools import cache
from itertools import islice
from typing import Any

from progrl.agent.seats import ExpertAgent
from progrl.config.orchestration import ToolPolicyConfig
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import HashedEncoder
from progrl.environments.retail import Retail
from progrl.orchestration import Catalogue, ToolPolicy, fit
from progrl.seeds import Seed
from progrl.stages.parts import make_world
from progrl.users.replies import build_reply_memory
from progrl.users.scripted import ScriptedUser

RETAIL = Retail()
ENCODER = HashedEncoder()
SEED = Seed.root(3)
SIMILAR = 0.5
CATALOGUES = {"retail": Catalogue.of(RETAIL.tools, ENCODER)}


@cache
def world() -> Any:
    user = ScriptedUser(build_reply_memory(RETAIL, ENCODER, 1, 120, 400))
    return make_world({"retail": RETAIL}, {"retail": user}, "a", 64)


@cache
def dialogues(split: str, count: int) -> tuple[Trajectory, ...]:
    """Dialogues of the expert with the scripted user."""
    tasks = islice(RETAIL.tasks(split, 1), count)  # type: ignore[arg-type]
    specs = [world().spec(t, SEED.child("task", t.id), SEED, 20, {}) for t in tasks]
    return tuple(world().play(specs, ExpertAgent()))


def configured(head: str = "open", **gold: Any) -> ToolPolicyConfig:
    """A configuration that learns from few dialogues in about a second."""
    learned = {"steps": 300, "batch": 64, "learning_rate": 0.003, "weight_decay": 0.1}
    return ToolPolicyConfig.model_validate(
        {
            "context": {"kind": "decay", "alpha": 0.7},
            "head": {"kind": head} | ({"describe": 0.5} if head == "open" else {}),
            "width": 64,
            "folds": 3,
            "gold": {**learned, "forget": 0.5, **gold},
            "improvement": {
                "beta": 0.5,
                "most_weight": 5.0,
                "kl": 0.1,
                "passes": 3,
                "learning_rate": 0.001,
            },
        }
    )


@cache
def learned(head: str = "open") -> ToolPolicy:
    """A policy learned from 200 dialogues; not to be changed."""
    return fit(configured(head), CATALOGUES, dialogues("train", 200), ENCODER, SIMILAR, SEED)
