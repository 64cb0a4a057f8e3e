"""Runs vLLM's own server in an environment that has vLLM and not progrl; ends with its input.

Called by path: `python vllm_server.py OPTIONS`. Whoever holds the other end of standard input lets
go of it by ending, in whatever way; then this process and all that it has started are killed.
"""

import os
import runpy
import signal
import sys
import threading


def _end_with_input() -> None:
    while os.read(0, 1024):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_input, daemon=True).start()
    del sys.path[0]  # progrl's own modules beside this file are none of vLLM's
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__", alter_sys=True)
