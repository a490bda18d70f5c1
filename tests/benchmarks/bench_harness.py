"""What the harness itself costs in a turn at high speed.  Run:  python -m tests.benchmarks.bench_harness

No test: it asserts nothing and is not collected. Scripted ASR, tone, and the emulator as the model; for each
API and rate: tokens written by the emulator and tokens noted by the tap at 400 and 500 ms after the request,
how late the last delta was noted, the event loop's worst lag, and this process's own processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.pipeline.driven import SPEECH_S, clip
from tests.pipeline.emulated_turns import ModelDriver, config_of, emulated_mode, running
from voicebench.clock import NS_PER_MS, ms
from voicebench.emulator.process import start
from voicebench.emulator.timing import TimingScript
from voicebench.stages.quiet import hush_pipecat

SLOTS_MS = (400.0, 500.0)
FIRST_MS = 50.0


async def turns(api: str, rate: float, count: int, log: Path, profile: cProfile.Profile | None) -> None:
    """Run so many turns and print what was found in each."""
    script = TimingScript(
        f"fast-{rate:g}",
        headers_ms=5.0,
        preamble_ms=5.0,
        first_text_ms=FIRST_MS,
        rate_tok_s=rate,
        reply="long",
        reply_tokens=round(rate * 0.8),
    )
    server = start([script], seed=1, log=log)
    try:
        mode = emulated_mode(api, server, script.name)
        config = config_of(mode, hear="onset", turn_timeout_s=10)
        talk = config.conversation.model_copy(update={"max_tokens": 5000})
        config = config.model_copy(update={"conversation": talk})
        async with running(ModelDriver(config)) as driver:
            for number in range(count + 1):
                cpu = time.process_time()
                if profile is not None and number:
                    profile.enable()
                heard = await driver.turn(clip(SPEECH_S))
                if profile is not None:
                    profile.disable()
                cpu = time.process_time() - cpu
                if number:
                    [stream] = heard.streams
                    print(
                        api, f"{rate:g} tok/s", told(stream, log), f"lag {ms(heard.lag_ns):.0f} ms", end=" "
                    )
                    print(f"cpu {cpu:.2f} s", stream.status, flush=True)
    finally:
        server.stop()


def told(stream: Any, log: Path) -> str:
    """Tokens by each slot's end, written and noted; the lateness of the last delta and of the worst."""
    record = json.loads(log.read_text("utf-8").splitlines()[-1])
    text = [event for event in record["events"] if event["text_tokens"]]
    written = [(event["after_ns"], event["text_tokens"], event["characters"]) for event in text]
    parts = []
    for slot in SLOTS_MS:
        end = stream.request_ns + slot * NS_PER_MS
        sent = max((tokens for at, tokens, _ in written if at <= end), default=0)
        noted = sum(len(part) for at, part in stream.deltas if at <= end)
        known = max((tokens for _, tokens, characters in written if characters <= noted), default=0)
        parts.append(f"by {slot:g} ms {sent} written {known} noted")
    seen, late = 0, []
    by_characters = {characters: at for at, _, characters in written}
    for at, part in stream.deltas:
        seen += len(part)
        if seen in by_characters:
            late.append(ms(at - by_characters[seen]))
    return f"{', '.join(parts)}, late {sorted(late)[len(late) // 2]:.1f} ms median {max(late):.1f} most,"


def main() -> None:
    """Measure each API at each rate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--api", default="openai-chat,anthropic,openai-responses,openai-responses-ws")
    parser.add_argument("--rates", default="1000,3000")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    hush_pipecat()
    for api in options.api.split(","):
        for rate in options.rates.split(","):
            profile = cProfile.Profile() if options.profile else None
            with tempfile.TemporaryDirectory() as folder:
                log = Path(folder) / "writes.jsonl"
                asyncio.run(turns(api, float(rate), options.turns, log, profile))
            if profile is not None:
                pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
