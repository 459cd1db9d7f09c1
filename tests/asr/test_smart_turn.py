"""The end of a turn by its sound: what the model is given, and what it makes of people."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from transformers import WhisperFeatureExtractor

from voiceloop.asr import smart_turn as module
from voiceloop.asr.smart_turn import FILE, NAME, SmartTurn, smart_turn
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.catalog.store import ModelStore
from voiceloop.engines import load
from voiceloop.errors import ModelCorrupt, ModelNotFound
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Pcm

pytestmark = pytest.mark.models


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the model is looked for."""

    def find(name: str, kind: str) -> Path:
        assert (name, kind) == (NAME, "turn")
        return tmp_path

    monkeypatch.setattr(module, "find", find)
    return tmp_path


class Listening:
    """Stands in for the network: takes down the features that it is given."""

    def __init__(self) -> None:
        self.given = np.zeros(0)

    def get_inputs(self) -> Any:
        return [SimpleNamespace(name="features")]

    def run(self, outputs: object, inputs: dict[str, Any]) -> Any:
        assert outputs is None
        self.given = inputs["features"]
        return [np.array([[0.25]], np.float32)]


def reference(pcm: Pcm) -> Any:
    """The features that the model was trained on."""
    extractor = WhisperFeatureExtractor(chunk_length=8)
    last = pcm[-8 * SPEECH_RATE :]
    padded = np.pad(last, (8 * SPEECH_RATE - len(last), 0))
    found = extractor(padded, sampling_rate=SPEECH_RATE, return_tensors="np", do_normalize=True)
    return found.input_features


@pytest.mark.parametrize("seconds", [0.3, 2.0, 8.0, 11.0])
def test_it_hears_the_last_eight_seconds_as_it_was_trained(seconds: float) -> None:
    rng = np.random.default_rng(1)
    loudness = np.repeat(rng.uniform(0, 0.3, 100), round(seconds * SPEECH_RATE / 100))
    pcm = (loudness * rng.standard_normal(len(loudness)) + 0.01).astype(np.float32)
    network = Listening()
    assert SmartTurn(network).end_of_turn_probability(pcm) == 0.25
    expected = reference(pcm)
    assert network.given.shape == expected.shape == (1, 80, 800)
    # The extractor mirrors the end of the audio, and here it is silent: that is the last frame.
    assert network.given[..., :-1] == pytest.approx(expected[..., :-1], abs=1e-3)
    assert network.given[..., -1] == pytest.approx(expected[..., -1], abs=0.5)


def test_silence_breaks_nothing() -> None:
    network = Listening()
    for pcm in (silence(0), silence(SPEECH_RATE)):
        SmartTurn(network).end_of_turn_probability(pcm)
        assert np.isfinite(network.given).all()


def without_inputs() -> bytes:
    """A network that takes nothing."""
    there = helper.make_tensor("there", TensorProto.FLOAT, [1], [0.5])
    node = helper.make_node("Constant", [], ["found"], value=there)
    found = helper.make_tensor_value_info("found", TensorProto.FLOAT, [1])
    graph = helper.make_graph([node], "none", [], [found])
    network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return network.SerializeToString()


@pytest.mark.parametrize(
    "content", [b"not a model", without_inputs()], ids=["no network", "no inputs"]
)
def test_a_model_that_cannot_be_read_or_found_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    (folder / FILE).write_bytes(content)
    with pytest.raises(ModelCorrupt, match="cannot be read") as damaged:
        smart_turn(TurnConfig())
    assert "\n" not in damaged.value.message and NAME in damaged.value.hint
    monkeypatch.undo()
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    with pytest.raises(ModelNotFound, match="not on this machine") as absent:
        load("turn", NAME, TurnConfig(sound=NAME))
    assert absent.value.hint == f"voiceloop models pull {NAME}"


def test_people_who_have_ended_sound_otherwise_than_people_who_go_on() -> None:
    if ModelStore().find(NAME) is None:
        pytest.skip(f"{NAME} is not here: voiceloop models pull {NAME} --from packages")
    if not os.environ.get("VOICELOOP_SPEECH"):
        pytest.skip("VOICELOOP_SPEECH names no folder of recordings")
    judge = smart_turn(TurnConfig())
    with AudioFile(Path(os.environ["VOICELOOP_SPEECH"]) / "jfk.flac") as file:
        pcm = np.concatenate(list(file.blocks()))
    quiet = pcm[-samples(200) :]

    def after(seconds: float) -> float:
        return judge.end_of_turn_probability(
            np.concatenate((pcm[: round(seconds * SPEECH_RATE)], quiet))
        )

    goes_on = [after(seconds) for seconds in (0.97, 1.63, 5.86, 6.66, 7.05, 8.82, 9.37, 9.78)]
    assert np.median(goes_on) < 0.1
    assert after(10.5) > 0.5
