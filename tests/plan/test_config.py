"""A configuration: what is wrong with it is said by file, key, value and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from voicebench.errors import BadRequest, ExitStatus
from voicebench.plan.config import Config, Vad, load_config, validated
from voicebench.plan.modes import find_mode

A_MODE = "own_modes:\n- {id: a, kind: live, provider: x, api: y, model: z, "


def refused(folder: Path, text: str) -> str:
    """What is said of a configuration file with that text; fails where nothing is."""
    file = folder / "some config.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(BadRequest) as caught:
        load_config(file)
    assert caught.value.exit_status is ExitStatus.BAD_REQUEST
    said = str(caught.value)
    assert str(file) in said
    return said


def test_an_empty_file_is_the_embedded_default(tmp_path: Path) -> None:
    """A file without a key gives the same run as no file."""
    file = tmp_path / "empty.yaml"
    file.write_text("# nothing yet\n", "utf-8")
    assert load_config(file) == Config()


def test_what_a_file_says_is_what_runs(tmp_path: Path) -> None:
    """Keys at the top, in a part and of a plug-in arrive, and the rest keeps its default."""
    file = tmp_path / "c.yaml"
    file.write_text(
        "budget_ms: 700\nvad: {stop_secs: 0.35}\nasr: {kind: whisper, beam_size: 1}\nhear: onset\n", "utf-8"
    )
    config = load_config(file)
    assert config.budget_ms == 700
    assert config.vad == Vad(stop_secs=0.35)
    assert config.asr.kind == "whisper"
    assert config.asr.settings == {"beam_size": 1}
    assert config.hear == "onset"
    assert config.tts == Config().tts


@pytest.mark.parametrize(
    ("text", "key", "near", "known"),
    [
        ("budget: 700", "'budget'", "'budget_ms'", "turn_timeout_s"),
        ("vad: {stop_sec: 1}", "'vad.stop_sec'", "'stop_secs'", "min_volume"),
        ("conversation: {max_token: 3}", "'conversation.max_token'", "'max_tokens'", "system_prompt"),
        (A_MODE + "prise: {input: 1}}", "'own_modes.0.prise'", "'price'", "decode_rate_tok_s"),
        (
            A_MODE + "price: {input: 1, output: 2, cache_reed: 3}}",
            "'own_modes.0.price.cache_reed'",
            "'cache_read'",
            "cache_write",
        ),
        (
            A_MODE + "quality: {wer: {value: 1, sauce: x}}}",
            "'own_modes.0.quality.wer.sauce'",
            "'source'",
            "assumed",
        ),
    ],
)
def test_an_unknown_key_names_the_nearest_one(
    tmp_path: Path, text: str, key: str, near: str, known: str
) -> None:
    """At every depth a mistyped key is named in full, with the key that was meant and those that exist."""
    said = refused(tmp_path, text)
    assert f"unknown key {key}" in said
    assert f"Did you mean {near}?" in said
    assert known in said


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("vad: {stop_secs: 9}", "vad.stop_secs", "9"),
        ("hear: everything", "hear", "'everything'"),
        ("repeats: 0", "repeats", "0"),
        ("seed: 1.5", "seed", "1.5"),
        ("slots_ms: [400, -1]", "slots_ms.1", "-1"),
        ("modes: local/smollm2-135m", "modes", "'local/smollm2-135m'"),
        ("asr: whisper", "asr", "'whisper'"),
        ("asr: {beam_size: 1}", "asr.kind", "required"),
        ("samples_per_mode: {a: -1}", "samples_per_mode.a", "-1"),
        ("budget_ms: .inf", "budget_ms", "inf"),
        ("budget_ms: .nan", "budget_ms", "nan"),
        ("turn_timeout_s: .inf", "turn_timeout_s", "inf"),
        ("1: 2", "1", "strings"),
        (A_MODE + "price: {input: .nan, output: 1}}", "own_modes.0.price.input", "nan"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(tmp_path: Path, text: str, key: str, value: str) -> None:
    """A value that is not allowed is shown beside the key that holds it."""
    said = refused(tmp_path, text)
    line = next(line for line in said.splitlines() if line.strip().startswith(f"{key}:"))
    assert value in line


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    """Two mistakes give two lines, so that a person corrects them in one go."""
    said = refused(tmp_path, "budget_ms: -1\nvad: {start_secs: 7}\n")
    assert "budget_ms" in said
    assert "vad.start_secs" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("modes: []", "at least one mode"),
        ("modes: [a, b, a]", "modes: named twice: a"),
        (A_MODE + "}\n- {id: a, kind: local, provider: x, api: y, model: w}", "own_modes: named twice: a"),
    ],
)
def test_keys_that_do_not_fit_each_other_are_refused(tmp_path: Path, text: str, words: str) -> None:
    """What is wrong with the file as a whole is said in one line, without the whole file after it."""
    said = refused(tmp_path, text)
    assert words in said
    assert "got" not in said


def test_a_long_value_is_shown_short(tmp_path: Path) -> None:
    """A value of a thousand characters does not fill the screen."""
    said = refused(tmp_path, f"hear: {'x' * 1000}")
    assert "xxx" in said
    assert len(said) < 500


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words\n", "42\n"])
def test_yaml_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    """A list, a text or a number at the top level is refused by name."""
    assert "keys and values" in refused(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "a: b: c",
        "name: [",
        "name: !!python/object/apply:os.system ['touch made-by-yaml']",
        "name: !!python/name:os.system",
        "name: 2001-99-99",
        "name: " + "[" * 5000,
        "\x00",
    ],
    ids=["colons", "open list", "python call", "python name", "no date", "endless", "nul"],
)
def test_yaml_that_cannot_be_read_is_refused_in_words(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken YAML and Python tags alike end in one sentence, and nothing of the file is carried out."""
    monkeypatch.chdir(tmp_path)
    assert "not valid YAML" in refused(tmp_path, text)
    assert not (tmp_path / "made-by-yaml").exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing file, a folder and bytes that are no UTF-8 are each refused with the path."""
    with pytest.raises(BadRequest, match=r"No such configuration file: .*absent\.yaml"):
        load_config(tmp_path / "absent.yaml")
    with pytest.raises(BadRequest, match="cannot be read"):
        load_config(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: caf\u00e9".encode("latin-1"))
    with pytest.raises(BadRequest, match=r"latin\.yaml cannot be read"):
        load_config(latin)


def test_a_configuration_cannot_be_changed() -> None:
    """A setting that was checked stays what it was."""
    with pytest.raises(ValidationError):
        Config().budget_ms = 1  # type: ignore[misc]


def test_an_alias_is_offered_as_it_is_written_in_a_file() -> None:
    """A setting whose key is a Python keyword is named by its key, not by the attribute behind it."""
    from voicebench.stages.any_pipecat import ServiceSettings

    with pytest.raises(BadRequest) as caught:
        validated(ServiceSettings, {"clas": "a.B"}, "here")
    assert "Did you mean 'class'?" in str(caught.value)
    assert "class_name" not in str(caught.value)


def test_an_unknown_mode_names_the_known_ones() -> None:
    """A mode id that nobody knows is refused with the catalogue's and the config's own ids."""
    own = Config.model_validate(
        {"own_modes": [{"id": "mine/a", "kind": "local", "provider": "x", "api": "y", "model": "z"}]}
    ).own
    assert find_mode("mine/a", own).model == "z"
    assert find_mode("local/smollm2-135m", own).kind == "local"
    with pytest.raises(BadRequest) as caught:
        find_mode("mine/b", own, "c.yaml")
    said = str(caught.value)
    assert "c.yaml: unknown mode 'mine/b'" in said
    assert "mine/a" in said
    assert "local/smollm2-135m" in said
