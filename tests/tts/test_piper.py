"""Piper's voices: small ones with random weights, cut and spoken as the real ones are."""

# ruff: noqa: RUF001 - phonemes look like letters

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tts.piper_voices import CHANNELS, HOP, RATE, SYMBOLS, piper_graph, write_piper_voice
from tests.tts.saying import clause, joined, say
from tests.tts.test_conformance import LONG, SHORT
from voiceloop.catalog.piper import FIRST_HALF, LATENT, VOCODER, VOICE, reach, split, split_piper
from voiceloop.engines import Tts
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.delivery import LARGEST
from voiceloop.tts.piper import PiperVoice, describe, piper
from voiceloop.types import Pcm

pytestmark = pytest.mark.models

Make = Callable[..., Path]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store."""
    folder = tmp_path / "models"
    monkeypatch.setenv("VOICELOOP_MODELS", str(folder))
    return folder


@pytest.fixture
def make(store: Path, tmp_path: Path) -> Make:
    """Call it with what a voice is to be; it returns its file."""

    def make(name: str = "voice", **said: Any) -> Path:
        return write_piper_voice(tmp_path / "voices" / f"{name}.onnx", **said)

    return make


def put(store: Path, file: Path, name: str, origin: str = "packages") -> Path:
    """Have a voice in the store as if it had been pulled."""
    folder = store / f"{name}@{origin}"
    folder.mkdir(parents=True)
    split_piper(file, folder)
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": "0" * 64} for path in folder.iterdir()
    }
    record = {"name": name, "origin": origin, "source": {}, "files": files}
    (folder / "voiceloop.json").write_text(json.dumps(record))
    return folder


def open_voice(file: Path | str = "", voice: str = "", speed: float = 1.0) -> Tts:
    return piper(TtsConfig(engine="piper", model=str(file), voice=voice, speed=speed))


def run(model: onnx.ModelProto, outputs: list[str] | None, **inputs: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(outputs, inputs))


def phonemes(ids: list[int], scales: tuple[float, float, float]) -> dict[str, Any]:
    return {
        "input": np.array([ids], np.int64),
        "input_lengths": np.array([len(ids)], np.int64),
        "scales": np.array(scales, np.float32),
    }


# ---- the graph in two


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, len(SYMBOLS) - 1), min_size=1, max_size=40),
    st.sampled_from([0, 1]),
    st.integers(0, 3),
)
def test_two_halves_give_what_the_whole_gives(ids: list[int], speaker: int, seed: int) -> None:
    """Without noise, which the whole draws as it likes."""
    for speakers in (1, 2):
        whole = piper_graph(speakers, seed)
        given = phonemes(ids, (0.0, 2.0, 0.0))
        who = {"sid": np.array([speaker], np.int64)} if speakers > 1 else {}
        (expected,) = run(whole, None, **given, **who)
        first, vocoder = split(piper_graph(speakers, seed))
        noise = np.random.default_rng(seed)
        drawn = {
            "text_noise": noise.normal(size=(1, 2, len(ids))).astype(np.float32),
            "noise": noise.normal(size=(1, CHANNELS, 7)).astype(np.float32),
        }
        latent, durations = run(first, [LATENT, "durations"], **given, **drawn, **who)
        (samples,) = run(vocoder, None, latent=latent, **who)
        assert np.allclose(samples, expected, atol=1e-5)
        assert durations.shape == (1, 1, len(ids))
        assert durations.sum() * HOP == samples.size == latent.shape[-1] * HOP


def test_the_noise_given_is_the_noise_that_sounds() -> None:
    """Drawn for as many frames as there are; a shorter one is read in a circle."""
    ids, (first, _) = [14, 3, 20, 9], split(piper_graph())
    still = {"text_noise": np.zeros((1, 2, 4), np.float32)}
    noise = np.random.default_rng(0).normal(size=(1, CHANNELS, 5)).astype(np.float32)
    given = phonemes(ids, (0.5, 4.0, 0.0))
    (quiet,) = run(first, [LATENT], **given, **still, noise=np.zeros_like(noise))
    (noisy,) = run(first, [LATENT], **given, **still, noise=noise)
    frames = quiet.shape[-1]
    assert frames > 5
    assert np.allclose(noisy - quiet, 0.5 * np.resize(noise[0].T, (frames, CHANNELS)).T, atol=1e-5)


def test_the_context_of_a_window_is_what_samples_depend_on_and_no_more() -> None:
    _, vocoder = split(piper_graph())
    before, after, hop = reach(vocoder.graph, LATENT, "samples")
    noted = {entry.key: int(entry.value) for entry in vocoder.metadata_props}
    assert noted == {"before": before, "after": after, "hop": hop}
    frames, at = before + after + 21, before + 10
    latent = np.random.default_rng(0).normal(size=(1, CHANNELS, frames)).astype(np.float32)
    (whole,) = run(vocoder, None, latent=latent)
    touched = set[int]()
    for frame in range(frames):
        other = latent.copy()
        other[:, :, frame] += 3.0
        (samples,) = run(vocoder, None, latent=other)
        changed = np.abs(samples - whole).ravel()[at * hop : (at + 1) * hop]
        if (changed > 0).any():
            touched.add(frame - at)
    assert touched == set(range(-before, after + 1))


def test_a_graph_that_is_no_voice_of_pipers_is_told(make: Make) -> None:
    file = make()
    model = onnx.load(file)
    del model.graph.node[:]
    onnx.save(model, file)
    with pytest.raises(ModelCorrupt, match="it is no voice of Piper"):
        open_voice(file)
    vocoder = split(piper_graph())[1]
    mixed = onnx.helper.make_node("ReduceMean", ["samples"], ["mixed"])
    vocoder.graph.node.append(mixed)
    with pytest.raises(ValueError, match="holds a ReduceMean"):
        reach(vocoder.graph, LATENT, "mixed")


# ---- speaking


@pytest.mark.parametrize("text", [SHORT, LONG])
@pytest.mark.parametrize("speakers", [(), ("ann", "bob")])
def test_windows_join_to_what_one_decode_gives(
    make: Make, tmp_path: Path, text: str, speakers: tuple[str, ...]
) -> None:
    split_piper(make(speakers=speakers), tmp_path)
    voice = PiperVoice(describe(tmp_path, "voice"))
    speaker = speakers[-1] if speakers else ""
    encoded = voice.encode(clause(text), text, speaker, 1.0)
    assert encoded is not None
    pieces = list(voice.decode(encoded, speaker))
    assert [last for _, last in pieces] == [False] * (len(pieces) - 1) + [True]
    if text == LONG:  # the last holds what is left, up to half of a window more
        sizes = [len(piece) for piece, _ in pieces[:-1]]
        assert len(sizes) > 1
        assert all(b == min(2 * a, LARGEST * HOP) for a, b in pairwise(sizes))
    session = onnxruntime.InferenceSession(tmp_path / VOCODER, providers=["CPUExecutionProvider"])
    who = {"sid": np.array([1], np.int64)} if speakers else {}
    (whole,) = cast(list[Pcm], session.run(None, {LATENT: encoded.latent, **who}))
    whole_again = np.concatenate([piece for piece, _ in pieces])
    assert np.allclose(whole_again, np.ravel(whole), atol=1e-5)


def test_the_symbols_read_are_what_espeak_ng_says_with_the_marks(
    make: Make, tmp_path: Path
) -> None:
    split_piper(make(), tmp_path)
    voice = PiperVoice(describe(tmp_path, "voice"))
    ids, symbols = voice._read("The dog, and the cat?")
    said = "ðə dˈɑːɡ, ænd ðə kˈæt?"
    assert "".join(symbols) == unicodedata.normalize("NFD", said)
    known = {symbol: index for index, symbol in enumerate(SYMBOLS)}
    between = [known["^"], known["_"]]
    for symbol in said:
        between += [known[symbol], known["_"]]
    assert ids == [*between, known["$"]]


def test_a_voice_that_reads_letters_needs_no_phonemes(make: Make) -> None:
    file = make(phoneme_type="text", language={"code": "uk_UA"})
    voice = open_voice(file)
    assert voice.language() == "uk-ua"
    assert len(joined(say(voice, clause("hello")))) > 0
    (unknown,) = say(voice, clause("日本"))
    assert not len(unknown.pcm)


# ---- which voice


def test_a_file_is_cut_once(make: Make, store: Path) -> None:
    file = make(speakers=("ann", "bob"))
    assert open_voice(file).voices() == ["voice/ann", "voice/bob"]
    (made,) = [path for path in store.iterdir() if path.name[0] != "."]
    before = (made / FIRST_HALF).stat().st_mtime_ns
    assert open_voice(file, "bob").voice == "voice/bob"
    assert open_voice(file, "voice/bob").voice == "voice/bob"
    assert (made / FIRST_HALF).stat().st_mtime_ns == before
    # What is said of a voice is a part of it.
    file.with_name(f"{file.name}.json").write_text((made / VOICE).read_text().replace("bob", "cyd"))
    assert open_voice(file).voices() == ["voice/ann", "voice/cyd"]


def test_what_has_been_pulled_is_at_hand(make: Make, store: Path) -> None:
    put(store, make("a", seed=1), "en_US-a-medium")
    put(store, make("b", seed=2, speakers=("ann", "bob")), "en_US-b-medium", "hub")
    put(store, make("slow", audio={"sample_rate": 2 * RATE}), "en_US-slow-high")
    engine = open_voice("en_US-a-medium")
    assert engine.voice == "en_US-a-medium"
    # One at another rate cannot speak in between.
    assert engine.voices() == ["en_US-a-medium", "en_US-b-medium/ann", "en_US-b-medium/bob"]
    assert open_voice(voice="en_US-b-medium/bob").voice == "en_US-b-medium/bob"
    assert open_voice(voice="en_US-b-medium").voice == "en_US-b-medium/ann"
    sounds = [joined(say(engine, clause(SHORT), voice)) for voice in engine.voices()]
    assert not any(
        len(a) == len(b) and np.allclose(a, b) for a in sounds for b in sounds if a is not b
    )


def test_a_damaged_neighbour_is_passed_over(make: Make, store: Path) -> None:
    put(store, make("a"), "en_US-a-medium")
    folder = put(store, make("b"), "en_US-b-medium")
    (folder / VOICE).write_text("{")
    assert open_voice("en_US-a-medium").voices() == ["en_US-a-medium"]
    with pytest.raises(ModelNotFound, match="shorter than they were"):
        open_voice("en_US-b-medium")


@pytest.mark.parametrize("damage", [b"", b"hello\n" * 99, b"cut"])
@pytest.mark.parametrize("file", [FIRST_HALF, VOCODER, VOICE])
def test_a_damaged_voice_is_one_clear_line(
    make: Make, tmp_path: Path, file: str, damage: bytes
) -> None:
    folder = tmp_path / "voice"
    folder.mkdir()
    split_piper(make(), folder)
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(whole[: len(whole) // 2] if damage == b"cut" else damage)
    with pytest.raises(ModelCorrupt, match="the voice 'voice' cannot be used: ") as caught:
        open_voice(folder)
    assert "\n" not in str(caught.value) and caught.value.hint


@pytest.mark.parametrize(
    "said",
    [
        {"phoneme_id_map": {}},
        {"phoneme_id_map": []},
        {"audio": {}},
        {"espeak": None},
        {"inference": {"noise_scale": "loud"}},
        {"num_speakers": "many"},
        {"speaker_id_map": ["ann"]},
    ],
)
def test_a_description_that_is_none_is_one_clear_line(make: Make, said: dict[str, Any]) -> None:
    with pytest.raises(ModelCorrupt, match="the voice 'voice' cannot be used: "):
        open_voice(make(**said))


def test_a_voice_in_a_language_that_espeak_ng_lacks(make: Make) -> None:
    with pytest.raises(ConfigError, match="no voice called 'tlh'"):
        open_voice(make(espeak={"voice": "tlh"}))


def test_phonemes_beyond_the_table_are_one_clear_line(make: Make) -> None:
    file = make(phoneme_id_map={symbol: [999] for symbol in SYMBOLS})
    with pytest.raises(ModelCorrupt, match="cannot be used"):
        say(open_voice(file), clause(SHORT))


def test_what_is_not_there_is_told_with_what_to_do(make: Make, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound) as absent:
        open_voice()
    assert absent.value.hint == "voiceloop models pull en_US-joe-medium"
    with pytest.raises(ModelNotFound, match=r"there is no file ./nowhere.onnx"):
        open_voice("./nowhere.onnx")
    with pytest.raises(ModelNotFound, match="there is no voice of Piper in"):
        open_voice(tmp_path)
    lonely = make()
    lonely.with_name(f"{lonely.name}.json").unlink()
    with pytest.raises(ModelNotFound, match=r"voice.onnx.json is not beside it"):
        open_voice(lonely)
    with pytest.raises(ConfigError) as caught:
        open_voice(make(speakers=("ann", "bob")), "anne")
    assert caught.value.hint == "did you mean 'ann'?"


def test_a_speaker_is_asked_for_by_its_full_name(make: Make) -> None:
    engine = open_voice(make(speakers=("ann", "bob")), "ann")
    engine.check_voice("voice/bob")
    with pytest.raises(ConfigError, match="no voice called 'bob'") as caught:
        engine.check_voice("bob")
    assert caught.value.hint == "did you mean 'voice/bob'?"
