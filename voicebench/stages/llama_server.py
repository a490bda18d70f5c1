"""A process that serves one GGUF model over an OpenAI-compatible API on loopback.

`python -m voicebench.stages.llama_server MODEL THREADS CONTEXT_TOKENS NICENESS`: announces its port when the
model is loaded, and ends with its parent. The key that it asks for comes in VOICEBENCH_LLAMA_KEY.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from voicebench.child import announce, end_with_parent


def give_way(niceness: int) -> None:
    """Let other processes go first where processors are short; nothing where the system has no such thing.

    Linux may share processor time among sessions before it looks at processes, and this one has its own.
    """
    if not niceness or not hasattr(os, "nice"):
        return
    os.nice(niceness)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(f"{niceness}\n", "ascii")


HTTP_THREADS = 72
"""An open connection holds one, idle or not, and each session keeps one; where none is left, it waits."""


def serve(model: Path, threads: int, context_tokens: int, key: str) -> None:
    """Load the model, listen, announce the port and stay until the parent is gone."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 1
    params.n_ctx = context_tokens
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = HTTP_THREADS
    params.warmup = True
    # Else earlier prompts are kept beside the last one: a question asked again would be answered sooner.
    params.cache_ram_mib = 0
    params.offline = True
    params.ui = False
    if key:
        params.api_keys = [key]
    server = xllamacpp.Server(params)
    address = server.listening_address
    announce(str(urlsplit(address).port))
    threading.Event().wait()


if __name__ == "__main__":
    end_with_parent()
    give_way(int(sys.argv[4]))
    serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), os.environ.pop("VOICEBENCH_LLAMA_KEY", ""))
