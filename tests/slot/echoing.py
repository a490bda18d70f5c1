"""An endpoint that answers with the caller's own key: in refusals, in a stream, and in errors inside one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Echo(BaseHTTPRequestHandler):
    """The model's name says what to do: `401`, `429`, `error` inside a stream, `hang`, or a plain reply."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = self.headers["authorization"].removeprefix("Bearer ")
        what = body["model"]
        if what in ("401", "429"):
            message = f"Incorrect API key provided: {key}. Headers: {dict(self.headers)}"
            self._send(int(what), json.dumps({"error": {"message": message, "code": "invalid_api_key"}}))
            return
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        text = {**head, "choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": None}]}
        end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        told: list[dict[str, Any]] = [text, end, {**head, "choices": [], "usage": usage}]
        if what == "error":
            told = [text, {"error": {"message": f"key {key} is odd", "code": "server_error"}}]
        if what == "hang":
            threading.Event().wait(3)
        self._send(200, "".join(f"data: {json.dumps(one)}\n\n" for one in told) + "data: [DONE]\n\n")

    def _send(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        kind = "text/event-stream" if status == 200 else "application/json"
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("x-request-id", "req_1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def echoing() -> Iterator[int]:
    """The endpoint's port, while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
