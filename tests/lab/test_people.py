"""Recordings of people: where their words meet, what stands before, and silences between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from lab.conversations.people import APART_MS, SEARCH_MS, Spoken, arrange, find
from lab.conversations.suites import LEAD_MS, PAUSE_MS
from tests.lab.made import at
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.audio.frames import samples
from voiceloop.bench.clips import Clip, ClipSpeech, room
from voiceloop.engines import AsrRequest
from voiceloop.types import Pcm, Word

pytestmark = pytest.mark.pure

WORDS = "so Printing, in the, only sense, differs. From all"
TIMES = (0.3, 0.6, 1.22, 1.5, 1.8, 2.4, 2.6, 3.2, 3.6, 4.0)
"""Where each word begins and the one before it ends."""
UNKNOWN = 5
"""A word that the aligner does not know."""
SILENT = ((1.0, 1.24), (3.14, 3.24))
"""Where the speaker says nothing; the first is a pause."""


class Ears(WindowedAsr):
    """A voice detector that knows what is loud, and a recogniser that knows the words."""

    name, frame, max_window_s = "ears", 512, 14.0

    def reset(self) -> None:
        pass

    def probability(self, pcm: Pcm) -> float:
        return float(np.abs(pcm).max() > 0.05)

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        assert request.final
        return [Word(text, 0.0, 4.6, 1.0) for text in WORDS.split()]  # no times to rely on


def align(pcm: Pcm, words: Sequence[str]) -> list[tuple[int, int] | None]:
    assert words == WORDS.split() and len(pcm) == at(4.6)
    places = [(at(TIMES[n]), at(TIMES[n + 1])) for n in range(len(words))]
    return [place if n != UNKNOWN else None for n, place in enumerate(places)]


def recording(text: str | None = None) -> Clip:
    """Something loud from 0.3 to 4.2 s."""
    pcm = room(np.random.default_rng(0), at(4.6), -60.0)
    pcm[at(0.3) : at(4.2)] += 0.3 * np.sin(np.arange(at(3.9)), dtype=np.float32)
    for start, end in SILENT:
        pcm[at(start) : at(end)] = room(np.random.default_rng(1), at(end) - at(start), -60.0)
    return Clip("a", pcm, pcm[:1600], ClipSpeech(text))


def found(text: str | None = None) -> Spoken:
    return find(recording(text), Ears(), align, Ears())


def test_speech_and_its_silences_are_found_by_the_voice_detector() -> None:
    spoken = found()
    assert abs(spoken.start - at(0.3)) <= 512
    assert abs(spoken.end - at(4.2)) <= samples(20)
    assert len(spoken.silences) == 2
    for (start, end), (true_start, true_end) in zip(spoken.silences, SILENT, strict=True):
        assert abs(start - at(true_start)) <= samples(20) and abs(end - at(true_end)) <= 512


def test_a_boundary_is_between_words_that_are_known_and_at_the_quietest_place_near() -> None:
    spoken = found()
    # The speaker pauses behind the second word, and nobody knows where the sixth is.
    assert [one.words for one in spoken.boundaries] == [1, 3, 4, 7, 8]
    for one in spoken.boundaries:
        assert abs(one.at - at(TIMES[one.words])) <= samples(SEARCH_MS) + samples(20)
    seventh = spoken.boundaries[3]
    assert at(SILENT[1][0]) < seventh.at < at(SILENT[1][1])
    assert seventh.prefix == "so Printing, in the, only sense, differs"


def test_each_recording_comes_as_it_is_and_then_with_so_many_silences() -> None:
    spoken = found("what is said")
    whole, *others = arrange([spoken, spoken], 3, pauses=20)[1:]
    assert whole.said.pauses == () and whole.said.text == "what is said"
    ((start, end),) = whole.said.own_pauses  # the other is too short
    assert start - (whole.said.start or 0) == spoken.silences[0][0] - spoken.start
    assert end - start == spoken.silences[0][1] - spoken.silences[0][0]
    assert sum(len(clip.said.pauses or ()) for clip in others) == 20
    used = Counter(pause.words for clip in others for pause in clip.said.pauses or ())
    # Two recordings with five boundaries: all are used once before any is used twice.
    assert set(used) == {1, 3, 4, 7, 8} and max(used.values()) <= 4
    assert len({clip.name for clip in others}) == len(others)
    assert all(clip.said.own_pauses == () for clip in others)


def test_what_is_said_of_a_clip_is_true_of_it() -> None:
    spoken = found()
    clips = arrange([spoken], 0, pauses=30)[1:]
    assert {len(clip.said.pauses or ()) for clip in clips} == {1, 2}
    for clip in clips:
        said = clip.said
        assert said.start is not None and said.end is not None and said.pauses
        loud = np.flatnonzero(np.abs(clip.pcm) > 0.05)
        assert abs(loud[0] - said.start) <= 512 and abs(loud[-1] - said.end) <= samples(20)
        assert samples(LEAD_MS[0]) <= said.start - spoken.start <= samples(LEAD_MS[1])
        for pause in said.pauses:
            inner = clip.pcm[pause.start + samples(20) : pause.end - 512]
            assert np.abs(inner).max() < 0.05
            length = pause.end - pause.start
            own = SILENT[1][1] - SILENT[1][0] if pause.words == 7 else 0
            assert samples(PAUSE_MS[0]) <= length <= samples(PAUSE_MS[1]) + at(own) + 1024
        places = [next(b.at for b in spoken.boundaries if b.words == p.words) for p in said.pauses]
        assert len(places) == 1 or places[1] - places[0] >= samples(APART_MS)
