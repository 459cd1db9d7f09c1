"""What the name of a model may be, and in which order that is decided."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.catalog.conftest import put
from tests.catalog.servers import Server
from voiceloop.catalog.cards import Kind
from voiceloop.catalog.names import find, prepare
from voiceloop.catalog.store import ModelStore
from voiceloop.errors import ModelNotFound
from voiceloop.settings.config import Config, load_config

pytestmark = pytest.mark.real


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models")


def config(preset: str = "starter", **flags: str) -> Config:
    given = {"preset": preset, **{key.replace("__", "."): value for key, value in flags.items()}}
    return load_config((), given)[0]


def test_the_name_of_a_card_is_no_folder(store: ModelStore, tmp_path: Path) -> None:
    (tmp_path / "tiny.en").mkdir()
    with chdir(tmp_path):
        with pytest.raises(ModelNotFound, match=r"Whisper tiny\.en is not on this machine"):
            find("tiny.en", "asr", store)
        model = put(store, "tiny.en")
        assert find("tiny.en", "asr", store) == model.folder
        assert find("./tiny.en", "asr", store) == Path("./tiny.en")


def test_a_card_of_another_kind_is_said_to_be_one(store: ModelStore) -> None:
    for _ in range(2):
        with pytest.raises(ModelNotFound, match=r"tiny\.en is a recogniser, and a language model"):
            find("tiny.en", "llm", store)
        put(store, "tiny.en")


def test_a_voice_for_another_engine_is_said_to_be_one(store: ModelStore) -> None:
    for _ in range(2):
        with pytest.raises(ModelNotFound, match=r"kokoro-82m is a model of Kokoro") as caught:
            find("kokoro-82m", "piper", store)
        assert caught.value.hint == "--tts.engine kokoro speaks with it"
        put(store, "kokoro-82m", "hub")
    with pytest.raises(ModelNotFound, match="is a voice of Piper, and a model of Kokoro"):
        prepare(config(tts__engine="kokoro", tts__model="en_US-joe-medium"), store)


@pytest.mark.parametrize(
    ("engine", "settings", "name"),
    [
        ("kokoro", {}, "kokoro-82m"),
        ("kokoro", {"tts__voice": "bf_emma"}, "kokoro-82m"),
        ("piper", {}, "en_US-joe-medium"),
        ("piper", {"tts__voice": "de_DE-thorsten-medium"}, "de_DE-thorsten-medium"),
        ("piper", {"tts__voice": "en_US-libritts-high/p3922"}, "en_US-libritts-high"),
    ],
)
def test_a_voice_that_is_not_here_is_told_before_anything_is_loaded(
    store: ModelStore, engine: str, settings: dict[str, str], name: str
) -> None:
    chosen = config(tts__engine=engine, **settings)
    with pytest.raises(ModelNotFound) as caught:
        prepare(chosen, store)
    assert caught.value.hint == f"voiceloop models pull {name}"
    put(store, name, "hub")
    prepare(chosen, store)


def test_a_damaged_model_is_said_to_be_damaged(store: ModelStore) -> None:
    (put(store, "tiny.en").folder / "model.bin").unlink()
    for attempt in (lambda: find("tiny.en", "asr", store), lambda: prepare(config("mini"), store)):
        with pytest.raises(ModelNotFound, match=r"Whisper tiny\.en: files are missing") as caught:
            attempt()
        assert caught.value.hint.startswith("voiceloop models pull")


@pytest.mark.parametrize(
    "name", ["./nowhere", "/nowhere/at/all", "~/no-such-model", "a/b/c", ".\\models", "x.gguf"]
)
@pytest.mark.parametrize("kind", ["asr", "llm"])
def test_a_name_written_like_a_path_is_never_looked_up_elsewhere(
    store: ModelStore, name: str, kind: str
) -> None:
    with pytest.raises(ModelNotFound, match=r"there is no (folder|file)"):
        find(name, "asr" if kind == "asr" else "llm", store)


def test_an_unknown_name_says_which_is_nearest(store: ModelStore) -> None:
    with pytest.raises(ModelNotFound) as caught:
        find("bsae.en", "asr", store)
    assert caught.value.hint == "did you mean 'base.en'?"


def test_a_preset_that_is_not_here_is_one_line(store: ModelStore) -> None:
    with pytest.raises(ModelNotFound) as caught:
        prepare(config("mini"), store)
    named = "Whisper tiny.en, SmolLM2 135M Instruct, Piper joe (medium), smart-turn"
    assert caught.value.message.startswith(named)
    assert caught.value.hint == "voiceloop models pull mini"
    put(store, "tiny.en")
    put(store, "smart-turn-v3.2")
    put(store, "en_US-joe-medium")
    with pytest.raises(ModelNotFound, match=r"^SmolLM2 135M Instruct is not on") as caught:
        prepare(config("mini"), store)
    assert caught.value.hint == "voiceloop models pull mini"
    put(store, "smollm2-135m-instruct")
    prepare(config("mini"), store)


def test_other_engines_need_no_cards(store: ModelStore) -> None:
    chosen = config("mini", llm__target="starter", turns__sound="somebody's own")
    prepare(
        replace(
            chosen,
            asr=replace(chosen.asr, engine="own"),
            tts=replace(chosen.tts, engine="espeak"),
        ),
        store,
    )
    prepare(config("starter"), store)


PROGRAM = """
import sys
from voiceloop.catalog.names import find
from voiceloop.errors import VoiceloopError
try:
    print(find(sys.argv[1], sys.argv[2]))
except VoiceloopError as error:
    print(error.message, error.hint, sep="\\n")
"""


def asked(name: str, kind: str, endpoint: str, folder: Path) -> tuple[list[str], list[str]]:
    """The lines of output and error of a process that looks for a model."""
    env = os.environ | {
        "HF_ENDPOINT": endpoint,
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(folder / "hf"),
        "VOICELOOP_MODELS": str(folder / "models"),
    }
    command = [sys.executable, "-c", PROGRAM, name, kind]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=60, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.parametrize("kind", ["piper", "kokoro", "turn"])
def test_of_other_kinds_repositories_are_not_fetched(kind: Kind, store: ModelStore) -> None:
    with pytest.raises(ModelNotFound, match="owner/name is no model here"):
        find("owner/name", kind, store)


def test_a_repository_is_fetched_once(server: Server, tmp_path: Path) -> None:
    files = {"config.json": b"{}", "model.safetensors": b"w" * 1000, "model.pkl": b"no"}
    commit = server.hub("org/llm", files, lfs=".safetensors")
    server.hub("org/llm", {**files, "onnx/model.onnx": b"no", "README.md": b"no"}, lfs=".s")
    (folder,), errors = asked("org/llm", "llm", server.url, tmp_path)
    assert errors == ["fetching org/llm (1.0 kB)"]
    kept = {path.name for path in Path(folder).iterdir()}
    assert kept == {"config.json", "model.safetensors", "voiceloop.json"}
    again, errors = asked("org/llm", "llm", "http://127.0.0.1:9", tmp_path)
    assert (again, errors) == ([folder], [])
    assert server.starts(f"/org/llm/resolve/{commit}/model.safetensors") == [0]


def test_a_repository_without_weights_that_can_be_used_says_so(
    server: Server, tmp_path: Path
) -> None:
    server.hub("org/old", {"config.json": b"{}", "pytorch_model.bin": b"pickle"})
    (message, hint), _ = asked("org/old", "llm", server.url, tmp_path)
    assert message == "org/old on the hub has no safetensors weights"
    assert hint == "name another repository"
    server.hub("org/one-file", {"README.md": b"", "model-Q4_K_M.gguf": b"GGUF"})
    (_, hint), _ = asked("org/one-file", "llm", server.url, tmp_path)
    assert hint == "download one of its .gguf files, and name that"
