"""Requests on a schedule: the wait for a free session is in the latency from it, and told in every format."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from statistics import fmean

from tests.slot.slot_runs import quick, ran, slot_plan
from voicebench.export import csv_rows, markdown
from voicebench.export.registry import exporter
from voicebench.export.run_report import report_of
from voicebench.load import LoadPlan
from voicebench.turns.records import Outcome

SERVICE_MS, RATE, REQUESTS, WITHIN_MS = 500.0, 10.0, 8, 50.0


async def test_queueing_shows_in_the_latency_from_the_schedule(tmp_path: Path) -> None:
    """500 ms of service, ten requests a second, eight of them, one at a time: from the schedule the mean is
    1.9 s and the maximum 3.3 s, the service time 0.5 s; JSON, CSV, Markdown and HTML say the same."""
    mode = quick("a", ttft_ms={"value": SERVICE_MS - 6, "source": "made", "assumed": True})
    plan = slot_plan(mode, requests=REQUESTS, max_tokens=12)
    told = await ran(plan, tmp_path / "run", load=LoadPlan(1, RATE))
    assert [one.outcome for one in told.records] == [Outcome.COMPLETED] * REQUESTS
    assert [one.turn for one in told.records] == list(range(REQUESTS))
    assert len(told.colds) == 1
    for record in told.records:
        assert record.service_ms is not None
        assert record.queue_ms is not None
        assert abs(record.service_ms - SERVICE_MS) <= WITHIN_MS
        assert record.from_schedule_ms == record.queue_ms + record.service_ms
    total = [one.from_schedule_ms or 0.0 for one in told.records]
    assert abs(fmean(total) - 1900) <= WITHIN_MS
    assert abs(max(total) - 3300) <= WITHIN_MS

    assert told.folder is not None
    made = report_of(told.folder)
    plain = made.report.to_dict()
    assert plain["run"]["load"]["sessions"] == 1
    assert plain["run"]["load"]["rate_per_s"] == RATE
    assert plain["run"]["load"]["most_at_once"] == 1
    load = plain["modes"][0]["load"]
    assert load["waited"] == REQUESTS - 1
    assert load["service_ms"]["n"] == load["from_schedule_ms"]["n"] == len(total)
    assert abs(load["from_schedule_ms"]["mean"] - fmean(total)) < 1e-6
    assert "queued" in {caveat["code"] for caveat in plain["caveats"]}
    rows = list(csv.DictReader(io.StringIO(csv_rows.export(made.report, made.records).decode())))
    assert [float(row["from_schedule_ms"]) for row in rows] == total
    text = markdown.export(made.report, made.records).decode()
    assert f"{load['from_schedule_ms']['mean']:.0f} / {load['from_schedule_ms']['p50']:.0f}" in text
    html = exporter("html")[0](made.report, made.records).decode()
    shown = re.search(r'data-pointer="?/modes/0/load/from_schedule_ms/max"?>(\d+)<', html)
    assert shown is not None
    assert shown[1] == f"{max(total):.0f}"
