"""Sends a run's metrics to MLflow in batches, from a thread, and loses none when killed.

Each metric is first written to a journal beside the stage's checkpoints. A resumed stage tells
again the steps since its last checkpoint; the journal knows which it has told, and which of these
had not reached the store.
"""

import contextlib
import json
import logging
import os
import platform
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from progrl.tracking.contracts import Metrics
from progrl.tracking.secrets import redacted

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

logger = logging.getLogger(__name__)

Entry = tuple[str, float, int, int]
"""Key, value, step, time in milliseconds."""

FLUSH_SECONDS = 5.0
BEAT_SECONDS = 30.0
BATCH = 1000
"""Most metrics that MLflow takes at once."""
LONGEST = 5000
"""Characters of a tag's value that MLflow takes."""

PROCESS, HEARTBEAT = "progrl.process", "progrl.heartbeat"


def process_mark() -> str:
    """Host, process id and start time: tells this process from any other, earlier or elsewhere."""
    import psutil

    return f"{platform.node()}:{os.getpid()}:{int(psutil.Process().create_time())}"


class MlflowRecorder:
    """Records one run; `close` must be called.

    Args:
        client: speaks to the store.
        run: the run's id.
        journal: file of the metrics told so far, kept between attempts; None for a run without.
    """

    def __init__(self, client: "MlflowClient", run: str, journal: Path | None = None) -> None:
        self._client = client
        self.run = run
        self._journal = journal
        self._told: set[tuple[str, int]] = set()
        self._pending: list[Entry] = []
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._warned = False
        self._next_beat = 0.0
        self._end = threading.Event()
        if journal is not None:
            self._recover(journal)
        self._thread = threading.Thread(target=self._keep_sending, name="tracking", daemon=True)
        self._thread.start()

    def metrics(self, values: Metrics, step: int = 0) -> None:
        """Note metrics at a step; what was told for that step already stands."""
        now = int(time.time() * 1000)
        with self._lock:
            new = []
            for key, value in values.items():
                if (key, step) not in self._told:
                    self._told.add((key, step))
                    new.append((key, float(value), step, now))
            self._write(new)
            self._pending += new

    def tags(self, values: Mapping[str, str]) -> None:
        """Set tags at once."""
        from mlflow.entities import RunTag

        tags = [RunTag(key, redacted(value)[:LONGEST]) for key, value in values.items()]
        self._client.log_batch(self.run, tags=tags)

    def artifact(self, path: Path, folder: str = "") -> None:
        """Keep a file, or what a folder holds, with the run."""
        send = self._client.log_artifacts if path.is_dir() else self._client.log_artifact
        send(self.run, str(path), folder or None)

    def close(self, status: str) -> None:
        """Send what is left and end the run as FINISHED, FAILED or KILLED."""
        self._end.set()
        self._thread.join()
        try:
            self.flush()
            self._client.set_terminated(self.run, status)
        except Exception as error:
            # The stage's results stand; only their copy in the store is incomplete.
            logger.warning("run %s could not be ended in the store: %s", self.run, _line(error))

    def flush(self) -> None:
        """Send all that is pending, and a sign of life when one is due."""
        from mlflow.entities import Metric, RunTag

        with self._sending:
            with self._lock:
                entries = list(self._pending)
            now = time.monotonic()
            beat = [RunTag(HEARTBEAT, str(int(time.time())))] if now >= self._next_beat else []
            for start in range(0, len(entries), BATCH):
                batch = entries[start : start + BATCH]
                made = [Metric(key, value, at, step) for key, value, step, at in batch]
                self._client.log_batch(self.run, metrics=made)
                with self._lock:
                    del self._pending[: len(batch)]
            if beat:
                self._client.log_batch(self.run, tags=beat)
                self._next_beat = now + BEAT_SECONDS

    def _keep_sending(self) -> None:
        while not self._end.wait(FLUSH_SECONDS):
            try:
                self.flush()
                self._warned = False
            except Exception as error:
                if not self._warned:
                    logger.warning("tracking is behind, will try again: %s", _line(error))
                self._warned = True

    def _write(self, entries: Iterable[Entry]) -> None:
        if self._journal is None:
            return
        text = "".join(json.dumps(entry) + "\n" for entry in entries)
        with self._journal.open("a", encoding="utf-8") as stream:
            stream.write(text)

    def _recover(self, journal: Path) -> None:
        """Learn from the journal what was told, and take up again what the store lacks."""
        entries = _read(journal)
        stored: set[tuple[str, int]] = set()
        for name in sorted({key for key, *_ in entries}):
            history: list[Metric] = self._client.get_metric_history(self.run, name)
            stored |= {(name, m.step) for m in history}
        for key, value, step, at in entries:
            if (key, step) not in stored and (key, step) not in self._told:
                self._pending.append((key, value, step, at))
            self._told.add((key, step))


def _read(journal: Path) -> list[Entry]:
    """The journal's entries; its last line may be torn, and its step will be told again."""
    if not journal.exists():
        return []
    entries: list[Entry] = []
    text = journal.read_text(encoding="utf-8", errors="replace")
    whole, _, torn = text.rpartition("\n")
    if torn:
        journal.write_text(whole + "\n" if whole else "", encoding="utf-8")
    for line in whole.splitlines():
        with contextlib.suppress(ValueError):
            key, value, step, at = json.loads(line)
            entries.append((key, value, step, at))
    return entries


def _line(error: Exception) -> str:
    return redacted(" ".join(str(error).split()))[:300]
