"""A stage in several processes: starts them, lets them find each other, and ends them.

The process that runs the stage leads; it starts the others as `python -m progrl.stages.processes`,
which meet it at a file, talk on the loopback interface, and run the same stage. They end with it,
whatever ends it.

Where a launcher (`accelerate launch`, `torchrun`) has started the processes of a run, be it on one
machine or on many, the stage runs in these and starts none.
"""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from progrl.config import Config, resolved
from progrl.errors import ProcessFault
from progrl.ranks import Ranks, launched
from progrl.stages.base import Context, find_stage

logger = logging.getLogger(__name__)
PATIENCE = timedelta(hours=2)
"""How long a process waits for another: simulated users may be slow."""
GRACE = 60.0
"""Seconds that the others have to end after the leading one."""


@contextmanager
def together(stage: str, context: Context) -> Iterator[Ranks]:
    """The place of this process among those that run `stage` in this block.

    Raises:
        ProcessFault: one of the others has ended before its time; the message says why.
    """
    ranks = launched()
    with ExitStack() as stack:
        if ranks is not None:
            stack.enter_context(_group(ranks, None))
            yield ranks
            return
        size = context.config.processes
        meeting = Path(stack.enter_context(TemporaryDirectory(prefix="progrl-"))) / "meeting"
        crew = stack.enter_context(_crew(stage, context, meeting))
        stack.enter_context(_environment(_place(0, size, context.config)))
        try:
            stack.enter_context(_group(Ranks(0, size), meeting))
            yield Ranks(0, size)
        except RuntimeError as error:  # what torch raises where a connection breaks
            if why := _why(crew, context.work):
                raise ProcessFault(why) from error
            raise


def _place(rank: int, size: int, config: Config) -> dict[str, str]:
    """What `torch.distributed` and accelerate read from the environment."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "OMP_NUM_THREADS": str(config.threads),
        "GLOO_SOCKET_IFNAME": next(n for _, n in socket.if_nameindex() if n.startswith("lo")),
    }


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _group(ranks: Ranks, meeting: Path | None) -> Iterator[None]:
    """The process group, found at a file or as a launcher has said.

    Accelerate, which remembers what it has found before, finds it anew.
    """
    import torch
    import torch.distributed as distributed
    from accelerate.state import AcceleratorState

    cuda = torch.cuda.is_available()
    backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    given: dict[str, Any] = {}
    if meeting is not None:  # no server, which would listen on all interfaces
        store = distributed.FileStore(  # type: ignore[attr-defined]
            str(meeting), ranks.size
        )
        given = {"rank": ranks.rank, "world_size": ranks.size, "store": store}
    distributed.init_process_group(backend, timeout=PATIENCE, **given)
    AcceleratorState._reset_state(reset_partial_state=True)
    try:
        yield
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
        distributed.destroy_process_group()


@contextmanager
def _crew(stage: str, context: Context, meeting: Path) -> "Iterator[list[subprocess.Popen[str]]]":
    """The other processes; after the block they have ended."""
    crew: list[subprocess.Popen[str]] = []
    size = context.config.processes
    order = {
        "stage": stage,
        "config": resolved(context.config),
        "root": str(context.root),
        "project": str(context.project),
        "work": str(context.work),
        "meeting": str(meeting),
    }
    try:
        for rank in range(1, size):
            environment = {**os.environ, **_place(rank, size, context.config)}
            with _log(context.work, rank).open("w", encoding="utf-8") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "progrl.stages.processes"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                    text=True,
                )
            crew.append(process)
            assert process.stdin is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        for process in crew:  # whoever is not there by now would be waited for in vain
            assert process.stdout is not None
            if not process.stdout.readline():
                raise ProcessFault(_why(crew, context.work) or "A process did not start.")
        yield crew
        _ended(crew, context.work)
    finally:
        for process in crew:
            process.kill()
            process.communicate()


def _log(work: Path, rank: int) -> Path:
    return work / f"process-{rank}.log"


def _why(crew: "list[subprocess.Popen[str]]", work: Path) -> str | None:
    """Which of the others has ended before its time, and why; None if none has."""
    for rank, process in enumerate(crew, start=1):
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            continue
        if code:
            lines = _log(work, rank).read_text(encoding="utf-8").strip().splitlines()
            said = lines[-1] if lines else "it said nothing"
            return (
                f"Process {rank + 1} of {len(crew) + 1} ended with code {code}: {said} (all of it "
                f"in {_log(work, rank)}). Run the stage again: it goes on from its last checkpoint."
            )
    return None


def _ended(crew: "list[subprocess.Popen[str]]", work: Path) -> None:
    """Wait for the others to end; ProcessFault where one does not."""
    end = time.monotonic() + GRACE
    for rank, process in enumerate(crew, start=1):
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise ProcessFault(
                f"Process {rank + 1} of {len(crew) + 1} had not ended {GRACE:g} seconds after the "
                f"leading one had finished, and was stopped (what it said is in "
                f"{_log(work, rank)}). Run the stage again: it goes on from its last checkpoint."
            ) from None


def _end_with_input() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)


def main() -> int:
    """Share a stage that another process leads; what to do comes as a line of JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the one that leads
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    config = Config.model_validate(given["config"])
    root, project, work = (Path(given[name]) for name in ("root", "project", "work"))
    context = Context(config, root, project, work)
    ranks = launched()
    assert ranks is not None
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    os.dup2(2, 1)
    with _group(ranks, Path(given["meeting"])):
        find_stage(given["stage"]).run(replace(context, ranks=ranks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
