"""What holds for every test: no network beyond loopback, one thread, nothing of the user's own."""

import os
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUARD = Path(__file__).parent / "guard"

# Set before torch, or a library that phones home, is imported here or in a process of a test's.
os.environ |= {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "DVC_NO_ANALYTICS": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PYTHONPATH": os.pathsep.join([str(GUARD), str(ROOT)]),
    "COLUMNS": "100",
    "TERM": "dumb",
}
for name in ("MLFLOW_TRACKING_URI", "PREFECT_API_URL", "FORCE_COLOR"):
    os.environ.pop(name, None)

# Started in the background by a shell, these tests and all that they start would be deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The interpreter may have a sitecustomize of its own, so the guard is loaded by its path.
sys.path[:0] = [str(GUARD), str(ROOT)]
sys.modules.pop("sitecustomize", None)
__import__("sitecustomize")


@pytest.fixture
def root() -> Path:
    """The repository."""
    return ROOT
