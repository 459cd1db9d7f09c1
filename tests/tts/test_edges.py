"""What surrounds a clause's sound: the same however the audio is cut into pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sounds import chunks, sizes
from voiceloop.audio.frames import silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.tts.delivery import FADE_IN_MS, FADE_OUT_MS, LEAD_MS, TAIL_MS, Trimmer, pause, trim
from voiceloop.types import Clause, Pcm

pytestmark = pytest.mark.pure

RATE = 8000
MS = RATE // 1000
LEVELS = (0.0, AUDIBLE / 2, -AUDIBLE, 0.5, -0.9)

stretches = st.lists(st.tuples(st.sampled_from(LEVELS), st.integers(1, 200)), max_size=8)


def audio(parts: list[tuple[float, int]]) -> Pcm:
    return np.concatenate(
        [silence(0), *(np.full(length, level, np.float32) for level, length in parts)]
    )


@given(stretches, sizes)
def test_the_pieces_make_no_difference(parts: list[tuple[float, int]], cuts: list[int]) -> None:
    pcm = audio(parts)
    whole, cut = trim(pcm, RATE)
    trimmer = Trimmer(RATE)
    pieces = [trimmer.feed(piece) for piece in chunks(pcm, cuts)]
    joined = np.concatenate((silence(0), *pieces, trimmer.finish()))
    assert np.array_equal(joined, whole)
    assert not len(whole) or trimmer.cut == cut


@given(stretches)
def test_what_is_kept_is_what_was_there_but_for_the_fades(parts: list[tuple[float, int]]) -> None:
    pcm = audio(parts)
    loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
    trimmed, cut = trim(pcm, RATE)
    if not len(loud):
        assert (len(trimmed), cut) == (0, 0)
        return
    start, end = max(0, loud[0] - LEAD_MS * MS), min(len(pcm), loud[-1] + 1 + TAIL_MS * MS)
    assert cut == start
    assert len(trimmed) == end - start
    inner = slice(FADE_IN_MS * MS, max(0, len(trimmed) - FADE_OUT_MS * MS))
    assert np.array_equal(trimmed[inner], pcm[start:end][inner])
    assert trimmed[0] == trimmed[-1] == 0


@given(stretches, sizes)
def test_sound_is_held_back_no_longer_than_the_fade(
    parts: list[tuple[float, int]], cuts: list[int]
) -> None:
    pcm = audio(parts)
    trimmer, given_, fed = Trimmer(RATE), 0, 0
    for piece in chunks(pcm, cuts):
        given_, fed = given_ + len(trimmer.feed(piece)), fed + len(piece)
        loud = np.flatnonzero(np.abs(pcm[:fed]) >= AUDIBLE)
        if len(loud) and loud[-1] - trimmer.cut >= (FADE_IN_MS + FADE_OUT_MS) * MS:
            assert given_ == loud[-1] + 1 - trimmer.cut - FADE_OUT_MS * MS


@pytest.mark.parametrize(("mark", "ms"), [(".", 300), (",", 150), ("?", 300), (":", 200), ("", 0)])
def test_the_pause_behind_a_clause_is_that_of_its_mark(mark: str, ms: int) -> None:
    clause = Clause(1, 0, "on" + mark, "on" + mark)
    assert len(pause(clause, RATE, 1.0)) == ms * MS
    assert len(pause(clause, RATE, 2.0)) == ms * MS // 2
    assert not len(pause(Clause(1, 0, "on" + mark, "on" + mark, last=True), RATE, 1.0))
