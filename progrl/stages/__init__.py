"""One module a DVC stage: reads inputs, calls the library, writes outputs."""

from progrl.stages.base import NAMES, Context, Stage, find_stage, input_hash, is_done, run_stage

__all__ = ["NAMES", "Context", "Stage", "find_stage", "input_hash", "is_done", "run_stage"]
