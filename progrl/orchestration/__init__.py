"""Tool orchestration: a learned policy that says which tool comes next, and plans made from it."""

from progrl.dialogue.codec import STOP, TALK
from progrl.orchestration.advice import PolicyAdvisor, RandomAdvisor
from progrl.orchestration.features import Catalogue, contexts, tool_of
from progrl.orchestration.folds import FoldedPolicies, fit_folds
from progrl.orchestration.gold import accuracy, fit, fold_of
from progrl.orchestration.improvement import Improver
from progrl.orchestration.plan import Choice, Course, Orchestrator, Plan
from progrl.orchestration.policy import ToolPolicy

__all__ = [
    "STOP",
    "TALK",
    "Catalogue",
    "Choice",
    "Course",
    "FoldedPolicies",
    "Improver",
    "Orchestrator",
    "Plan",
    "PolicyAdvisor",
    "RandomAdvisor",
    "ToolPolicy",
    "accuracy",
    "contexts",
    "fit",
    "fit_folds",
    "fold_of",
    "tool_of",
]
