"""Silences of a recording's own background: as loud as it, without clicks, and nothing is lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.conversations.gaps import FADE_MS, GRAIN_MS, Gap, background, insert
from voiceloop.audio.frames import SPEECH_RATE, dbfs, samples
from voiceloop.bench.clips import room
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure

SECOND = SPEECH_RATE
FADE = samples(FADE_MS)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def recording(floor: float, *, quiet_s: float = 0.5) -> Pcm:
    """A loud second between two quiet stretches."""
    quiet = room(rng(1), round((2 * quiet_s + 1) * SECOND), floor)
    quiet[round(quiet_s * SECOND) :][:SECOND] += room(rng(2), SECOND, -20.0)
    return quiet


@pytest.mark.parametrize("floor", [-70.0, -55.0, -40.0])
@pytest.mark.parametrize("quiet_s", [0.1, 0.5])
def test_the_background_is_as_loud_as_the_quiet_parts_everywhere(
    floor: float, quiet_s: float
) -> None:
    made = background(recording(floor, quiet_s=quiet_s), rng(), 2 * SECOND)
    assert dbfs(made) == pytest.approx(floor, abs=2)
    around = np.concatenate((made, made))  # and where it begins again
    pieces = np.array_split(around, 4 * SECOND // samples(GRAIN_MS))
    assert [dbfs(piece) for piece in pieces] == pytest.approx([floor] * len(pieces), abs=4)
    assert dbfs(made[: samples(10)]) == pytest.approx(floor, abs=4)


def test_the_background_has_no_seam_in_it_nor_where_it_begins_again() -> None:
    pcm = recording(-50.0)
    made = background(pcm, rng(), SECOND)
    steps = np.abs(np.diff(np.concatenate((made, made[:1]))))
    within = np.abs(np.diff(pcm[: SECOND // 2]))
    assert steps.max() < 1.8 * within.max()


places = st.lists(st.integers(0, SECOND), max_size=4, unique=True).map(sorted)


@given(places, st.lists(st.integers(0, 5000), min_size=4, max_size=4))
def test_all_of_the_recording_is_there_and_the_gaps_hold_the_background_alone(
    at: list[int], lengths: list[int]
) -> None:
    at = [one for one, before in zip(at, [-SECOND, *at], strict=False) if one - before > 2 * FADE]
    gaps = [Gap(one, length) for one, length in zip(at, lengths, strict=False)]
    pcm = 1 + np.arange(SECOND, dtype=np.float32)
    noise = np.full(SECOND, -1.0, np.float32)
    heard = insert(pcm, gaps, noise)
    assert len(heard) == len(pcm) + sum(gap.length for gap in gaps)
    shift = 0
    for first, last in pairwise([0, *at, SECOND]):
        begin, end = first + FADE, max(last - FADE, first + FADE)
        assert np.array_equal(heard[begin + shift : end + shift], pcm[begin:end])
        length = next((gap.length for gap in gaps if gap.at == last), 0)
        assert np.all(heard[last + shift : last + shift + length] == -1)
        shift += length
