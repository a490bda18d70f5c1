"""A process that serves one GGUF model over an OpenAI-compatible API on loopback.

`python -m voicebench.stages.llama_server MODEL THREADS CONTEXT_TOKENS`: announces its port when the model is
loaded, and ends with its parent. The key that it asks for comes in VOICEBENCH_LLAMA_KEY.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from voicebench.child import announce, end_with_parent


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
    params.n_threads_http = 2
    params.warmup = True
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
    serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), os.environ.pop("VOICEBENCH_LLAMA_KEY", ""))
