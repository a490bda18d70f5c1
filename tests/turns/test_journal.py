"""The journal: one strict line a turn, on disk at once, readable however it was cut."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from tests.turns.made import made
from voicebench.errors import RunProblem
from voicebench.turns.journal import JournalWriter, journal_line, read_journal
from voicebench.turns.records import TurnRecord


def write(path: Path, *records: TurnRecord, no_text: bool = False) -> None:
    with JournalWriter(path, no_text=no_text) as journal:
        for record in records:
            journal.append(record)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Records come back equal and in order, with text of any script."""
    records = (
        made(0, reply='Grüße, "Welt"\n\u2028☃ 😀'),
        made(1, outcome="failed", reason="no route", deltas=()),
    )
    write(tmp_path / "j", *records)
    reading = read_journal(tmp_path / "j")
    assert reading.records == records
    assert (reading.torn_lines, reading.problems, reading.unknown_fields) == (0, (), ())


def test_a_line_is_on_disk_when_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each append writes one line and syncs it, and another reader sees it before the journal is closed."""
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(descriptor)

    with JournalWriter(tmp_path / "j") as journal:
        monkeypatch.setattr(os, "fsync", fsync)
        for count in (1, 2, 3):
            journal.append(made(count))
            assert len(synced) == count
            assert len(read_journal(tmp_path / "j").records) == count


def test_the_file_is_private_and_made_before_the_first_turn(tmp_path: Path) -> None:
    """Making the writer makes the file, readable by its owner alone, whatever the file was before."""
    path = tmp_path / "j"
    path.touch(mode=0o644)
    path.chmod(0o644)
    with JournalWriter(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_journal_cut_at_every_byte_keeps_its_whole_lines(tmp_path: Path) -> None:
    """Whatever byte a journal is cut at, every whole line loads, and at most one line is torn."""
    records = tuple(made(turn, reply="Grüße ☃", deltas=((1, 2, 0.5),)) for turn in range(3))
    write(tmp_path / "whole", *records)
    data = (tmp_path / "whole").read_bytes()
    ends = [place for place, byte in enumerate(data) if byte == 0x0A]
    cut = tmp_path / "cut"
    for size in range(len(data) + 1):
        cut.write_bytes(data[:size])
        whole = sum(end <= size for end in ends)
        reading = read_journal(cut)
        assert reading.records == records[:whole]
        assert reading.torn_lines == (0 if size == 0 or size in ends or size - 1 in ends else 1)
        assert not reading.problems


def test_appending_after_a_cut_at_every_byte_loses_no_whole_line(tmp_path: Path) -> None:
    """A journal that goes on after a cut holds the whole lines from before and the new one, nothing torn."""
    records = (made(0, deltas=(), reply="☃"), made(1, deltas=(), reply="☃"))
    new = made(2, deltas=())
    data = b"".join(journal_line(record) + b"\n" for record in records)
    cut = tmp_path / "cut"
    for size in range(0, len(data) + 1, 7):
        cut.write_bytes(data[:size])
        before = read_journal(cut).records
        write(cut, new)
        reading = read_journal(cut)
        assert reading.records == (*before, new)
        assert reading.torn_lines == 0
        assert cut.read_bytes().endswith(b"}\n")


def test_a_torn_tail_longer_than_one_block_is_cut_off_whole(tmp_path: Path) -> None:
    """A torn line of several hundred kilobytes is found and cut off as a whole."""
    path = tmp_path / "j"
    path.write_bytes(journal_line(made(0)) + b"\n" + b'{"reply":"' + b"x" * 300_000)
    write(path, made(1))
    assert [record.turn for record in read_journal(path).records] == [0, 1]


def test_line_feeds_of_other_systems_blank_lines_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    """CRLF ends, blank lines and a leading byte-order mark change nothing."""
    records = (made(0), made(1))
    lines = [journal_line(record) for record in records]
    (tmp_path / "j").write_bytes(b"\xef\xbb\xbf" + lines[0] + b"\r\n\r\n  \r\n" + lines[1] + b"\r\n")
    reading = read_journal(tmp_path / "j")
    assert reading.records == records
    assert (reading.torn_lines, reading.problems) == (0, ())


def test_fields_of_a_newer_version_are_passed_over_and_named(tmp_path: Path) -> None:
    """Unknown fields, also nested ones, are ignored and told; the rest of the record counts."""
    record = made(0, usage={"output_tokens": 3}, attempts=[{"request_ns": 1, "status": "ok"}])
    value = json.loads(journal_line(record))
    value["mood"] = {"deep": [1]}
    value["usage"]["audio_tokens"] = 4
    value["attempts"][0]["proxy"] = None
    (tmp_path / "j").write_text(json.dumps(value) + "\n", encoding="utf-8")
    reading = read_journal(tmp_path / "j")
    assert reading.records == (record,)
    assert reading.unknown_fields == ("attempts.proxy", "mood", "usage.audio_tokens")
    assert reading.problems == ()


def test_a_field_that_an_older_version_lacked_has_its_default(tmp_path: Path) -> None:
    """A line with only the fields that no turn can be without still loads."""
    value = json.loads(journal_line(made(0)))
    needed = {name for name, field in TurnRecord.model_fields.items() if field.is_required()}
    (tmp_path / "j").write_text(json.dumps({name: value[name] for name in needed}), encoding="utf-8")
    (record,) = read_journal(tmp_path / "j").records
    assert record.deltas == ()
    assert record.reply is None


def test_a_whole_line_that_is_no_turn_is_told_and_the_rest_loads(tmp_path: Path) -> None:
    """A damaged line is named by number and field, without its content, and takes no other line with it."""
    value = json.loads(journal_line(made(0)))
    value["outcome"] = "sk-secret"
    good = journal_line(made(1))
    lines = [json.dumps(value).encode(), b"[1, 2]", good, good.replace(b'"lag_ms":1.0', b'"lag_ms":NaN')]
    (tmp_path / "j").write_bytes(b"\n".join(lines))
    reading = read_journal(tmp_path / "j")
    assert [record.turn for record in reading.records] == [1]
    assert [problem.split(":")[0] for problem in reading.problems] == ["line 1", "line 2", "line 4"]
    assert "outcome" in reading.problems[0]
    assert "sk-secret" not in "".join(reading.problems)


def test_a_line_is_strict_json_whatever_the_record_holds(tmp_path: Path) -> None:
    """Numbers that are not finite and lone surrogates never reach the disk, and the line reads back."""
    record = made(
        0,
        lag_ms=float("nan"),
        work_ms={"asr": float("inf"), "llm_total": 3.0},
        served={"speed": float("nan"), "note": "a\udc00b"},
        reply="joined \ud83d\ude00, alone \ud83d.",
    )
    line = journal_line(record)
    value = json.loads(line.decode(), parse_constant=lambda name: pytest.fail(name))
    assert (value["lag_ms"], value["work_ms"]) == (None, {"llm_total": 3.0})
    assert value["served"] == {"speed": None, "note": "a\ufffdb"}
    assert value["reply"] == "joined 😀, alone \ufffd."
    (tmp_path / "j").write_bytes(line)
    assert len(read_journal(tmp_path / "j").records) == 1


def test_a_record_that_could_not_be_read_back_is_refused(tmp_path: Path) -> None:
    """A token count that is no number raises instead of leaving an unreadable line."""
    with JournalWriter(tmp_path / "j") as journal, pytest.raises(ValueError, match="deltas"):
        journal.append(made(0, deltas=((1, 1, float("nan")),)))
    assert (tmp_path / "j").read_bytes() == b""


def test_text_can_be_left_out(tmp_path: Path) -> None:
    """With no_text, nothing that was said is in the file, and figures are."""
    write(tmp_path / "j", made(0, spoken="as spoken"), no_text=True)
    value = json.loads((tmp_path / "j").read_text(encoding="utf-8"))
    assert not {"transcript", "reply", "spoken", "first_clause"} & value.keys()
    (record,) = read_journal(tmp_path / "j").records
    assert record.reply is None
    assert record.voice_to_voice_ms == 700


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """Two runs never write one journal at the same time; once the first has closed, the next may."""
    with (
        JournalWriter(tmp_path / "j") as journal,
        pytest.raises(RunProblem, match="another voicebench"),
    ):
        JournalWriter(tmp_path / "j")
    journal.close()
    write(tmp_path / "j", made(0))


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    """A link planted in place of the journal is refused, and its target stays as it was."""
    (tmp_path / "target").write_bytes(b"keep")
    (tmp_path / "j").symlink_to(tmp_path / "target")
    with pytest.raises(RunProblem, match="Cannot write"):
        JournalWriter(tmp_path / "j")
    assert (tmp_path / "target").read_bytes() == b"keep"


def test_a_full_disk_is_told_and_what_was_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails halfway raises, and the torn piece merges with no line written later."""
    real = os.write
    room = [40]

    def full(descriptor: int, data: bytes) -> int:
        if room[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(descriptor, bytes(data[: room[0]]))
        room[0] -= written
        return written

    with JournalWriter(tmp_path / "j") as journal:
        journal.append(made(0))
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(RunProblem, match="No space left"):
            journal.append(made(1))
        monkeypatch.setattr(os, "write", real)
        assert [record.turn for record in read_journal(tmp_path / "j").records] == [0]
        journal.append(made(2))
    reading = read_journal(tmp_path / "j")
    assert [record.turn for record in reading.records] == [0, 2]
    assert reading.torn_lines == 0


def test_a_journal_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Reading an absent file raises an error that names it."""
    with pytest.raises(RunProblem, match=r"nowhere\.jsonl"):
        read_journal(tmp_path / "nowhere.jsonl")
