"""Names of models: the catalogue's, a person's own files, a library's, and hostile ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.conftest import House
from voicebench.errors import BadRequest, ModelFileProblem, VoicebenchError
from voicebench.models.places import cache_root
from voicebench.models.resolve import Origin, resolve_llm, resolve_piper, resolve_whisper

Resolver = Callable[[str], object]
RESOLVERS = (resolve_whisper, resolve_piper, resolve_llm)

HOSTILE = [
    "..",
    "../../etc/passwd",
    "/etc/no-such-voice",
    "a/../../b",
    "..\\..\\b",
    "C:\\no\\such.onnx",
    "c:b",
    "a\0b",
    "a\nb",
    "\x1b[31mred",
    "\udcff",
    "",
    "  ",
    "-i",
    "--index-url",
    "$(x)",
    "a;b",
    "a..b",
    "%2e%2e",
    "x" * 5000,
    "~no-such-person-here/x",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, house: House, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, beside an empty cache."""
    here = tmp_path / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def _whisper_folder(path: Path) -> Path:
    path.mkdir()
    (path / "model.bin").write_bytes(b"x")
    return path


def _voice(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    path.with_name(path.name + ".json").write_text("{}")
    return path


def test_names_of_the_catalogue_give_our_own_files() -> None:
    """The id and the short name of the default models lead to the files that voicebench fetches."""
    models = cache_root() / "models"
    for name in ("whisper-tiny.en", "tiny.en"):
        whisper = resolve_whisper(name)
        assert (whisper.origin, whisper.model_id, whisper.name) == (Origin.CATALOGUE, "whisper-tiny.en", name)
        assert whisper.folder == models / "whisper-tiny.en"
        assert whisper.library_name is None
    for name in ("piper-en_US-joe-medium", "en_US-joe-medium"):
        piper = resolve_piper(name)
        assert piper.model == models / "piper-en_US-joe-medium" / "en_US-joe-medium.onnx"
        assert piper.config == models / "piper-en_US-joe-medium" / "en_US-joe-medium.onnx.json"
        assert (piper.origin, piper.model_id) == (Origin.CATALOGUE, "piper-en_US-joe-medium")
    for name in ("smollm2-135m-instruct", "smollm2-135m"):
        llm = resolve_llm(name)
        assert llm.model == models / "smollm2-135m-instruct" / "SmolLM2-135M-Instruct.Q4_1.gguf"
        assert (llm.origin, llm.model_id) == (Origin.CATALOGUE, "smollm2-135m-instruct")


def test_a_catalogue_name_wins_over_a_folder_of_that_name(folder: Path) -> None:
    """A folder that happens to be called like a model is taken only when it is written as a path."""
    _whisper_folder(folder / "tiny.en")
    assert resolve_whisper("tiny.en").origin is Origin.CATALOGUE
    assert resolve_whisper("./tiny.en").folder == folder / "tiny.en"


def test_a_model_of_another_kind_is_refused() -> None:
    """A voice is not taken for a speech recogniser, nor the other way round."""
    with pytest.raises(BadRequest, match="is one for TTS, but one for ASR"):
        resolve_whisper("en_US-joe-medium")
    with pytest.raises(BadRequest, match="is one for ASR, but one for LLM"):
        resolve_llm("tiny.en")


def test_other_plain_names_are_left_to_the_library() -> None:
    """A name that only the library knows is handed on; Piper's download has its folder inside the cache."""
    whisper = resolve_whisper("large-v3")
    assert (whisper.origin, whisper.library_name, whisper.folder) == (Origin.LIBRARY, "large-v3", None)
    piper = resolve_piper("pt_PT-tugão-medium")
    assert (piper.origin, piper.library_name, piper.model) == (Origin.LIBRARY, "pt_PT-tugão-medium", None)
    assert piper.download_folder == cache_root() / "piper"


def test_a_whisper_model_may_be_called_as_on_its_hub(folder: Path) -> None:
    """`owner/name` is left to the library unless a folder is called so; a voice has no such names."""
    found = resolve_whisper("someone/whisper-small.en-ct2")
    assert (found.origin, found.library_name) == (Origin.LIBRARY, "someone/whisper-small.en-ct2")
    (folder / "someone").mkdir()
    own = _whisper_folder(folder / "someone" / "whisper-small.en-ct2")
    assert resolve_whisper("someone/whisper-small.en-ct2").folder == own
    for name in ("someone/voice", "someone/../voice", "./someone/voice", "a/b/c"):
        with pytest.raises(BadRequest):
            resolve_piper(name)
    for path in ("no-such/model.bin", "a/b/c", "../a", "~a/b", "a/.b"):
        with pytest.raises(BadRequest):
            resolve_whisper(path)


def test_an_unknown_language_model_is_refused() -> None:
    """llama.cpp has no names of its own, so an unknown one is told with the known ones."""
    with pytest.raises(BadRequest, match=r"(?s)gpt-99.*smollm2-135m-instruct"):
        resolve_llm("gpt-99")


@pytest.mark.parametrize("form", ["absolute", "relative", "bare", "file"])
def test_a_local_whisper_folder_works_in_every_form(folder: Path, form: str) -> None:
    """An own CTranslate2 folder is found by absolute or relative path, by bare name, or by its model.bin."""
    own = _whisper_folder(folder / "my-whisper")
    name = {
        "absolute": str(own),
        "relative": "./my-whisper",
        "bare": "my-whisper",
        "file": "my-whisper/model.bin",
    }
    found = resolve_whisper(name[form])
    assert (found.origin, found.folder, found.model_id) == (Origin.LOCAL, own, None)


def test_a_folder_without_a_model_is_told(folder: Path) -> None:
    """A CTranslate2 folder must hold model.bin: the missing path is named."""
    (folder / "empty").mkdir()
    with pytest.raises(ModelFileProblem) as caught:
        resolve_whisper("empty")
    assert str(folder / "empty" / "model.bin") in str(caught.value)


@pytest.mark.parametrize("name", ["voices/own.onnx", "voices"])
def test_a_local_voice_works(folder: Path, name: str) -> None:
    """An own voice is found by its .onnx file, or by the folder that holds just one."""
    voice = _voice(folder / "voices" / "own.onnx")
    found = resolve_piper(name)
    assert (found.origin, found.model) == (Origin.LOCAL, voice)
    assert found.config == folder / "voices" / "own.onnx.json"


def test_a_voice_without_its_settings_is_told(folder: Path) -> None:
    """A voice whose .onnx.json is missing is refused, naming that file."""
    voice = _voice(folder / "own.onnx")
    (folder / "own.onnx.json").unlink()
    with pytest.raises(ModelFileProblem) as caught:
        resolve_piper(str(voice))
    assert str(folder / "own.onnx.json") in str(caught.value)


def test_a_folder_with_several_voices_is_told(folder: Path) -> None:
    """Which of several voices is meant is not guessed: they are listed."""
    for name in ("b.onnx", "a.onnx"):
        _voice(folder / "voices" / name)
    with pytest.raises(ModelFileProblem, match=r"a\.onnx, b\.onnx"):
        resolve_piper("voices")
    (folder / "empty").mkdir()
    with pytest.raises(ModelFileProblem, match="holds no Piper voice"):
        resolve_piper("empty")


def test_a_local_gguf_works(folder: Path) -> None:
    """An own GGUF file is found in any letter case and with spaces or other scripts in its name."""
    own = folder / "☃ é" / "My Model.GGUF"
    own.parent.mkdir()
    own.write_bytes(b"GGUF")
    for name in (str(own), "☃ é/My Model.GGUF", "☃ é"):
        assert resolve_llm(name).model == own
        assert resolve_llm(name).origin is Origin.LOCAL


def test_a_file_of_another_kind_is_told(folder: Path) -> None:
    """A file that exists but is no model of the kind is refused by name."""
    (folder / "notes.txt").write_text("x")
    with pytest.raises(ModelFileProblem, match=r"notes\.txt"):
        resolve_llm("notes.txt")
    with pytest.raises(ModelFileProblem, match=r"notes\.txt"):
        resolve_piper("./notes.txt")
    with pytest.raises(ModelFileProblem, match=r"notes\.txt"):
        resolve_whisper("notes.txt")


@pytest.mark.parametrize("resolve", RESOLVERS)
@pytest.mark.parametrize("name", ["no/such/model", "voice.onnx", "model.GGUF", ".\\model", "./model"])
def test_a_path_that_does_not_exist_is_a_bad_request(resolve: Resolver, name: str) -> None:
    """What looks like a path must exist: it is named, and never handed to a library's download."""
    with pytest.raises(BadRequest) as caught:
        resolve(name)
    assert name in str(caught.value)


@pytest.mark.parametrize("resolve", RESOLVERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_and_make_nothing(
    resolve: Resolver, name: str, tmp_path: Path, folder: Path
) -> None:
    """Names that try to leave the cache, to be options or terminal codes, are told and write nothing."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(VoicebenchError) as caught:
        resolve(name)
    told = str(caught.value)
    assert all(c.isprintable() or c == "\n" for c in told)
    assert told.encode("utf-8")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_left_to_a_library_stays_inside_its_folder() -> None:
    """Whatever plain name passes, a file of that name in the library's folder lies in the cache."""
    for name in ("a", "tiny.en.x", "a-b_c+d", "é", "1.2.3"):
        found = resolve_piper(name)
        assert found.download_folder is not None
        target = (found.download_folder / f"{name}.onnx").resolve()
        assert target.parent == (cache_root() / "piper").resolve()
