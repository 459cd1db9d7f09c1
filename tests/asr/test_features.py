"""The fast features are those of faster-whisper's extractor."""

from __future__ import annotations

import numpy as np
import pytest
from faster_whisper.feature_extractor import FeatureExtractor
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceloop.asr.encoding import LogMel
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure


def sound(length: int, seed: int, level: float) -> Pcm:
    rng = np.random.default_rng(seed)
    envelope = np.abs(np.sin(np.arange(length) / 2000))
    return (level * envelope * rng.standard_normal(length)).astype(np.float32)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 40_000), st.integers(0, 9), st.sampled_from([0.0, 1e-5, 0.1]),
    st.integers(0, 100), st.sampled_from([80, 128]),
)  # fmt: skip
def test_features_equal_the_extractor_on_audio_padded_with_silence(
    length: int, seed: int, level: float, extra: int, mels: int
) -> None:
    extractor = FeatureExtractor(feature_size=mels)
    pcm = sound(length, seed, level)
    frames = max(2, -(-length // 160) + extra)
    padded = np.pad(pcm, (0, frames * 160 - length))
    expected = extractor(padded)[:, :-1]
    features = LogMel(extractor.mel_filters)(pcm, frames)
    assert features.dtype == np.float32
    assert features.shape == expected.shape == (mels, frames)
    assert np.abs(features - expected).max() < 1e-4
