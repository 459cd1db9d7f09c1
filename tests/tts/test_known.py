"""Voices that files tell of are known before their models are opened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.tts.piper_voices import write_piper_voice
from voiceloop.catalog.piper import FIRST_HALF, VOCODER, split_piper
from voiceloop.engines import load
from voiceloop.errors import ConfigError, ModelCorrupt
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.known import check_voice

pytestmark = pytest.mark.models


@pytest.fixture(params=["espeak", "piper", "kokoro"])
def config(
    request: pytest.FixtureRequest,
    kokoro_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> TtsConfig:
    """An engine, and where its model is; the graphs of the model cannot be opened."""
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))
    model = tmp_path / request.param
    if request.param == "espeak":
        return TtsConfig(engine="espeak")
    if request.param == "kokoro":
        shutil.copytree(kokoro_folder, model)
        graphs = list(model.rglob("*.onnx"))
    else:
        model.mkdir()
        split_piper(write_piper_voice(tmp_path / "voice.onnx", speakers=["ann", "bob"]), model)
        graphs = [model / FIRST_HALF, model / VOCODER]
    for graph in graphs:
        graph.write_bytes(b"not a graph")
    return TtsConfig(engine=request.param, model=str(model))


def known(config: TtsConfig) -> list[str]:
    """Voices that the engine has."""
    if config.engine == "espeak":
        return ["en-us", "de", "en-gb+f3"]
    if config.engine == "kokoro":
        return ["af_heart"]
    return ["ann", "piper/bob", ""]


def test_a_voice_that_there_is_is_accepted(config: TtsConfig) -> None:
    for voice in known(config):
        check_voice(TtsConfig(engine=config.engine, model=config.model, voice=voice))


@pytest.mark.parametrize(
    ("voice", "meant"),
    [
        ("Joe", "en_US-joe-medium"),
        ("EN_us-joe-medium", "en_US-joe-medium"),
        ("heart", "kokoro-82m, then --tts.engine kokoro --tts.voice af_heart"),
    ],
)
def test_the_name_of_a_speaker_or_of_another_engines_voice_is_understood(
    config: TtsConfig, voice: str, meant: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_voice(TtsConfig(engine=config.engine, model=config.model, voice=voice))
    assert caught.value.hint.startswith(f"voiceloop models pull {meant}")


def test_one_that_there_is_not_is_refused_as_the_engine_would(config: TtsConfig) -> None:
    with pytest.raises(ConfigError, match="no voice called 'nosuch'") as caught:
        check_voice(TtsConfig(engine=config.engine, model=config.model, voice="nosuch"))
    assert caught.value.hint


def test_no_model_was_opened_for_that(config: TtsConfig) -> None:
    if config.engine != "espeak":  # which has none
        with pytest.raises(ModelCorrupt):
            load("tts", config.engine, config)


def test_what_is_not_known_from_files_is_left_to_the_engine() -> None:
    check_voice(TtsConfig(engine="coqui", voice="anything"))
    check_voice(TtsConfig(engine="nosuch", voice="anything"))
