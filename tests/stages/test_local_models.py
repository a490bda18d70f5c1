"""The local models' own processes and files: what is served, to whom, and what is said where one is wrong."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import httpx2
import pytest

from tests.processes import gone_within
from tests.stages.asked import a_mode
from voicebench.errors import BadRequest, ModelFileProblem, RunProblem
from voicebench.models.resolve import resolve_llm
from voicebench.plan.config import Conversation
from voicebench.stages import asr_whisper, llm_local, tts_piper
from voicebench.stages.asr_whisper import WhisperSettings
from voicebench.stages.llm import Tap
from voicebench.stages.llm_local import LlamaSettings
from voicebench.stages.llm_openai import chat_asker, make_client
from voicebench.stages.shared import Shared
from voicebench.stages.tts_piper import PiperSettings


@pytest.mark.models
def test_the_model_server_answers_its_own_run_only(tmp_path: Path) -> None:
    """The server listens on loopback, refuses who has not the run's key, and is gone when the run closes."""
    shared = Shared(log_folder=tmp_path)
    base_url, client = llm_local._serve("smollm2-135m-instruct", LlamaSettings(), shared)
    assert base_url.startswith("http://127.0.0.1:")
    question = {"model": "x", "messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 3}
    refused = httpx2.post(f"{base_url}/chat/completions", json=question)
    assert refused.status_code == 401
    key = {"Authorization": f"Bearer {client.api_key}"}
    answered = httpx2.post(f"{base_url}/chat/completions", json=question, headers=key, timeout=30)
    assert answered.status_code == 200
    kept = dict(part.split("=") for part in answered.headers["keep-alive"].split(", "))
    assert float(kept["timeout"]) >= llm_local.KEPT_S + 1, "no request meets the closing of its connection"
    assert client.api_key not in (tmp_path / "llama.log").read_text("utf-8", "replace")
    [server] = servers(tmp_path)
    shared.close()
    assert gone_within(server, 2.0)


def servers(log_folder: Path) -> list[int]:
    """The processes of this one that write a log into that folder."""
    import os

    from tests.processes import children_of

    found = []
    for pid in children_of(os.getpid()):
        try:
            if os.readlink(f"/proc/{pid}/fd/2").startswith(str(log_folder)):
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("kept_s", "connections"), [(0.0, 2), (60.0, 1), (None, 1)])
async def test_an_idle_connection_is_used_for_so_long_only(kept_s: float | None, connections: int) -> None:
    """A connection that was idle for longer than the client may keep it is not used again."""
    opened: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        body = b'{"id": "x", "object": "chat.completion", "created": 0, "model": "x", "choices": []}'
        with contextlib.suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                told = next(
                    line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
                )
                await reader.readexactly(int(told.split(b":")[1]))
                fields = b"Content-Type: application/json\r\nContent-Length: %d" % len(body)
                writer.write(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\n" + body)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = make_client(f"http://127.0.0.1:{port}/v1", "k", 10.0, kept_s)
        for _ in range(2):
            await client.chat.completions.create(model="x", messages=[{"role": "user", "content": "a"}])
        await client.close()
        for writer in opened:
            writer.close()
            await writer.wait_closed()
    assert len(opened) == connections


async def test_a_streamed_request_to_the_model_server_ends_its_own_connection() -> None:
    """llama.cpp closes a connection behind a streamed reply without a word, so none is used for a second one,
    however soon it is made."""
    heads: list[bytes] = []
    choice = b'{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}'
    event = b'data: {"id": "x", "choices": [' + choice + b"]}"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event + b"\n\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        client = make_client(base_url, "k", 10.0, llm_local.KEPT_S)
        asker = chat_asker(a_mode("openai-chat"), llm_local._chat(base_url), Conversation(), Tap(), client)
        for _ in range(2):
            assert (await asker.ask("Hello?")).status == "ok"
        await asker.close()
    assert len(heads) == 2
    assert all(b"\r\nconnection: close\r\n" in head.lower() for head in heads)


@pytest.mark.models
def test_a_file_that_is_no_model_is_told_with_the_servers_own_words(tmp_path: Path) -> None:
    """A GGUF that cannot be loaded ends in an error that shows the end of the server's log."""
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(RunProblem) as caught:
        llm_local._serve(str(bad), LlamaSettings(), Shared(log_folder=tmp_path))
    assert "did not start" in str(caught.value)
    assert "\n" in str(caught.value)


def test_a_model_that_is_not_there_is_named() -> None:
    """A path of no file is refused by each stage before anything is started."""
    with pytest.raises(BadRequest, match=r"absent\.gguf"):
        resolve_llm("/no/such/absent.gguf")
    with pytest.raises(BadRequest, match=r"absent\.onnx"):
        tts_piper.load(PiperSettings(voice="/no/such/absent.onnx"), offline=True)


def test_a_damaged_voice_is_told(tmp_path: Path) -> None:
    """A voice whose files are no voice is refused with its path."""
    (tmp_path / "v.onnx").write_bytes(b"not a model")
    (tmp_path / "v.onnx.json").write_text("{}", "utf-8")
    with pytest.raises(ModelFileProblem, match=r"v\.onnx"):
        tts_piper.load(PiperSettings(voice=str(tmp_path / "v.onnx")), offline=True)


def test_a_damaged_recogniser_is_told(tmp_path: Path) -> None:
    """A folder that holds no Whisper model is refused with its name."""
    (tmp_path / "model.bin").write_bytes(b"not a model")
    with pytest.raises(ModelFileProblem, match="Whisper"):
        asr_whisper.load(WhisperSettings(model=str(tmp_path)), offline=True)
