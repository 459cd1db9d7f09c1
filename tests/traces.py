"""Traces to test with: any that a recorder can give, one of a plain turn, and what none may be."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.types import TurnTrace

seconds = st.floats(0, 86_400)
any_marks = st.dictionaries(st.sampled_from(list(Mark)), seconds)
spans = st.lists(
    st.tuples(
        st.sampled_from(list(Lane)),
        seconds,
        st.floats(0, 30),
        st.dictionaries(st.sampled_from(["words", "tokens"]), st.integers(0, 9)),
    ),
    max_size=12,
)

EXAMPLE: dict[str, float] = {
    Mark.SPEECH_START: 10.0,
    Mark.FIRST_PARTIAL: 10.5,
    Mark.PREFILL_START: 10.7,
    Mark.SPEECH_END: 11.8,
    Mark.PAUSE: 11.83,
    Mark.ENDPOINT: 12.0,
    Mark.TRANSCRIPT_FINAL: 12.06,
    Mark.FIRST_BURST: 12.1,
    Mark.FIRST_CLAUSE: 12.13,
    Mark.FIRST_SYNTHESIS: 12.2,
    Mark.FIRST_SOUND: 12.212,
    Mark.REPLY_END: 12.9,
    Mark.SYNTHESIS_END: 13.0,
    Mark.SOUND_END: 15.0,
}


@st.composite
def traces(draw: st.DrawFn) -> TurnTrace:
    """Any trace that a recorder can give."""
    recorder = Recorder(draw(st.integers(0, 5)))
    for mark, at in draw(any_marks).items():
        recorder.mark(mark, at)
    for lane, start, length, args in draw(spans):
        recorder.span(lane, f"a piece of {lane}", start, start + length, **args)
    return recorder.trace("done", "yes")


def example() -> TurnTrace:
    recorder = Recorder(7)
    for mark, at in EXAMPLE.items():
        recorder.mark(Mark(mark), at)
    for index in range(6):
        recorder.span(
            Lane.ASR, "partial", 10.3 + index * 0.24, 10.4 + index * 0.24, words=index, text="so"
        )
    for index in range(20):
        recorder.span(Lane.DECODE, "round", 12.06 + index * 0.04, 12.1 + index * 0.04, tokens=3)
    recorder.span(Lane.TTS, "clause 1", 12.13, 12.25)
    recorder.span(Lane.SPEAKER, "sound", 12.2, 15.0)
    recorder.count("drafted", 40)
    recorder.count("accepted", 30)
    recorder.count("accepted")
    return recorder.trace("done", "It is noon.")


CHAINS = (
    (Mark.SPEECH_START, Mark.SPEECH_END, Mark.PAUSE, Mark.ENDPOINT, Mark.FIRST_SOUND),
    (Mark.SPEECH_START, Mark.FIRST_PARTIAL, Mark.TRANSCRIPT_FINAL),
    (Mark.FIRST_BURST, Mark.FIRST_CLAUSE, Mark.FIRST_SYNTHESIS, Mark.FIRST_SOUND, Mark.SOUND_END),
    (Mark.FIRST_BURST, Mark.REPLY_END),
    (Mark.FIRST_SYNTHESIS, Mark.SYNTHESIS_END),
)
"""Each mark of a chain comes no earlier than the one before it, however the stages overlap."""


def out_of_order(trace: TurnTrace) -> list[tuple[Mark, Mark]]:
    """Pairs of marks that happened in an impossible order; empty for every correct trace."""
    found: list[tuple[Mark, Mark]] = []
    for chain in CHAINS:
        present = [mark for mark in chain if mark in trace.marks]
        found += [
            (earlier, later)
            for earlier, later in pairwise(present)
            if trace.marks[later] < trace.marks[earlier]
        ]
    return found
