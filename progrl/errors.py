"""The errors a user may meet, one class for each boundary that can fail.

Each message says what is wrong, where, and how to mend it. The command line prints it alone,
without a traceback, and ends with `ProgrlError.exit_code`.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class ProgrlError(Exception):
    """Anything that a user can mend; never raised for a fault of progrl's own."""

    exit_code = 2


class ConfigurationError(ProgrlError):
    """An unknown, wrong or ineffective key, or a combination that cannot work."""


class NotInstalled(ConfigurationError):
    """An optional part whose packages are missing; the message has the line that installs them."""


class DataError(ProgrlError):
    """A file that is missing, corrupted, of another version, or that could not be written."""


class EnvironmentFault(ProgrlError):
    """An environment failed for reasons that are not the agent's: the episode is not evidence."""


class UserFault(ProgrlError):
    """A simulated user failed for reasons that are not the agent's: the episode is not evidence."""


class EngineFault(ProgrlError):
    """An engine could not sample: the episode is not evidence."""


class CheckpointError(ProgrlError):
    """A checkpoint or model folder is incomplete, damaged, or belongs to another run."""


class TrackingError(ProgrlError):
    """The tracking server or its store refused, or a run it should hold is not there."""


class ProcessFault(ProgrlError):
    """One of the processes that share a stage's work has ended before its time."""


class BusyError(ProgrlError):
    """Another process works on the same outputs."""


class MalformedAction(ValueError):
    """What the agent wrote is no action; its text becomes the observation the agent reads next."""


def check_names(state: Mapping[str, Any], names: set[str], what: str) -> None:
    """Raise CheckpointError unless `state` has exactly these names."""
    if set(state) != names:
        raise CheckpointError(
            f"The checkpoint's {what} has {sorted(state)}, expected {sorted(names)}: it was "
            "written by another version. Remove the run's folder to start again."
        )


def nearest(word: str, names: Iterable[str]) -> str:
    """A question whether a name like an unknown word was meant, or "" where none is like it.

    >>> nearest("retial", ["airline", "retail"])
    "did you mean 'retail'?"
    """
    near = difflib.get_close_matches(word, list(names), n=1)
    return f"did you mean {near[0]!r}?" if near else ""
