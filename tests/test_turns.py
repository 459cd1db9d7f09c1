"""Turn-taking: events in order, exact to the sample, and blind to how the audio was cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.audio import Framer, samples, silence
from voiceloop.config import TurnConfig
from voiceloop.turns import (
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnDetector,
    TurnEnded,
    TurnEvent,
)
from voiceloop.types import AudioFrame, Pcm

pytestmark = pytest.mark.pure

WINDOW = 512
MS = samples(1)


def run(
    probabilities: Sequence[float], config: TurnConfig, pcm: Pcm | None = None
) -> list[TurnEvent]:
    if pcm is None:
        pcm = silence(len(probabilities) * WINDOW)
    detector = TurnDetector(config)
    frames = Framer(size=WINDOW).feed(pcm)
    events = [e for f, p in zip(frames, probabilities, strict=True) for e in detector.feed(f, p)]
    return events + detector.flush()


def voice(length: int, level: float = 0.3) -> Pcm:
    """A loud tone."""
    return (level * np.sin(np.arange(length) * 0.2)).astype(np.float32)


probabilities = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.34, 0.36, 0.49, 0.5, 1.0])), max_size=120
)
configs = st.builds(
    TurnConfig,
    min_speech_ms=st.integers(0, 200),
    pause_ms=st.integers(0, 200),
    hangover_ms=st.integers(0, 800),
    pre_roll_ms=st.integers(0, 500),
    max_turn_s=st.floats(1, 3),
)


@given(probabilities, configs)
def test_events_alternate_as_the_state_machine_says(
    series: list[float], config: TurnConfig
) -> None:
    follows: dict[type | None, set[type]] = {
        None: {SpeechStarted},
        SpeechStarted: {SpeechPaused, TurnEnded},
        SpeechPaused: {SpeechResumed, TurnEnded},
        SpeechResumed: {SpeechPaused, TurnEnded},
        TurnEnded: {SpeechStarted},
    }
    last: TurnEvent | None = None
    for event in run(series, config):
        assert type(event) in follows[type(last) if last else None]
        assert last is None or event.sample >= last.sample
        last = event
    assert last is None or isinstance(last, TurnEnded)


@given(probabilities, configs)
def test_turns_do_not_overlap_and_hold_the_speech_that_they_report(
    series: list[float], config: TurnConfig
) -> None:
    taken = start = 0
    for event in run(series, config):
        match event:
            case SpeechStarted():
                assert taken <= event.start <= event.speech_start < event.sample
                start = event.speech_start
            case SpeechPaused():
                assert start < event.speech_end <= event.sample
            case TurnEnded():
                assert start < event.speech_end <= event.sample
                taken = event.sample if event.forced else event.speech_end
            case SpeechResumed():
                pass


@given(probabilities, configs)
def test_no_turn_is_longer_than_the_greatest_length_and_a_window(
    series: list[float], config: TurnConfig
) -> None:
    start = 0
    for event in run(series, config):
        if isinstance(event, SpeechStarted):
            start = event.start
        elif isinstance(event, TurnEnded):
            assert event.sample - start < samples(1000 * config.max_turn_s) + WINDOW + samples(
                config.min_speech_ms + config.pre_roll_ms
            )


@given(probabilities, configs)
def test_a_turn_ends_in_the_first_window_that_completes_the_hangover(
    series: list[float], config: TurnConfig
) -> None:
    paused: SpeechPaused | None = None
    last = len(series) * WINDOW
    for event in run(series, config):
        match event:
            case SpeechPaused():
                paused = event
            case TurnEnded() if paused and not event.forced and event.sample < last:
                assert event.speech_end == paused.speech_end
                over = event.sample - event.speech_end - samples(config.hangover_ms)
                assert over >= 0
                assert over < WINDOW or event.sample == paused.sample
            case _:
                paused = None


def test_a_click_shorter_than_min_speech_begins_no_turn() -> None:
    assert run([0, 0, 0.9, 0, 0, 0.9, 0, 0], TurnConfig(min_speech_ms=64)) == []


def test_the_beginning_includes_the_pre_roll_and_is_decided_after_min_speech() -> None:
    events = run([0.0] * 20 + [0.9] * 5, TurnConfig(min_speech_ms=64, pre_roll_ms=300))
    assert events[0] == SpeechStarted(22 * WINDOW, 20 * WINDOW - 300 * MS, 20 * WINDOW)


def test_speech_goes_on_at_a_probability_at_which_it_would_not_begin() -> None:
    config = TurnConfig(threshold=0.5, release=0.35, pause_ms=32, hangover_ms=2000)
    assert run([0.4] * 10, config) == []
    begun = run([0.6, 0.6] + [0.4] * 10, config)
    assert [type(e) for e in begun] == [SpeechStarted, TurnEnded]
    # Once released, the lower level does not count as going on.
    paused = run([0.6, 0.6, 0.1] + [0.4] * 10, config)
    assert [type(e) for e in paused] == [SpeechStarted, SpeechPaused, TurnEnded]


def test_a_pause_and_going_on_within_the_hangover_are_one_turn() -> None:
    series = [0.9] * 10 + [0.0] * 8 + [0.9] * 5 + [0.0] * 30
    config = TurnConfig(pause_ms=64, hangover_ms=500)
    kinds = [type(e) for e in run(series, config)]
    assert kinds == [SpeechStarted, SpeechPaused, SpeechResumed, SpeechPaused, TurnEnded]


def test_the_hangover_can_be_chosen_call_by_call() -> None:
    detector = TurnDetector(TurnConfig(pause_ms=64, hangover_ms=500))
    series = [0.9] * 10 + [0.0] * 20
    ended: list[int] = []
    for i, p in enumerate(series):
        frame = AudioFrame(silence(WINDOW), 16_000, i * WINDOW)
        # From the sixth silent window on the transcript is known to be complete.
        events = detector.feed(frame, p, hangover_ms=150 if i >= 15 else None)
        ended += [e.sample for e in events if isinstance(e, TurnEnded)]
    assert ended == [16 * WINDOW]


def test_a_stream_that_stops_ends_the_turn_in_progress_and_only_that() -> None:
    events = run([0.9] * 10, TurnConfig())
    assert [type(e) for e in events] == [SpeechStarted, TurnEnded]
    assert events[-1].sample == 10 * WINDOW
    assert run([0.0] * 10, TurnConfig()) == []


def test_a_turn_of_the_greatest_length_ends_and_the_next_takes_over_without_a_gap() -> None:
    events = run([0.9] * 80, TurnConfig(max_turn_s=1.0))
    ends = [e for e in events if isinstance(e, TurnEnded)]
    starts = [e for e in events if isinstance(e, SpeechStarted)]
    assert [e.forced for e in ends] == [True, True, False]
    assert [s.start for s in starts[1:]] == [e.sample for e in ends[:2]]


@given(
    st.integers(4000, 12_000),
    st.integers(8000, 20_000),
    st.floats(0.02, 0.9),
    st.sampled_from([0.0, 0.0001, 0.001]),
    st.integers(0, 3),
)
def test_the_end_of_speech_is_found_within_the_late_windows_to_ten_milliseconds(
    lead: int, length: int, level: float, noise: float, late: int
) -> None:
    rng = np.random.default_rng(0)
    pcm = np.concatenate((silence(lead), voice(length, level), silence(16_000)))
    pcm += noise * rng.standard_normal(len(pcm)).astype(np.float32)
    end = lead + length
    count = len(pcm) // WINDOW
    # The network notices the end up to three windows late, as Silero does.
    series = [
        0.9 if lead < (i + 1) * WINDOW and i * WINDOW < end + late * WINDOW else 0.0
        for i in range(count)
    ]
    events = run(series, TurnConfig(), pcm[: count * WINDOW])
    ended = [e for e in events if isinstance(e, TurnEnded)]
    assert len(ended) == 1
    assert abs(ended[0].speech_end - end) <= 10 * MS


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=20))
def test_any_chunking_of_the_audio_gives_the_same_events(sizes: list[int]) -> None:
    pcm = np.concatenate((silence(9000), voice(20_000), silence(20_000)))

    def events(chunks: Sequence[Pcm]) -> list[TurnEvent]:
        framer, detector = Framer(size=WINDOW), TurnDetector(TurnConfig())
        return [
            event
            for chunk in chunks
            for frame in framer.feed(chunk)
            for event in detector.feed(frame, float(np.abs(frame.pcm).max() > 0.05))
        ]

    cuts = np.cumsum(np.resize(sizes, len(pcm)))
    cuts = cuts[cuts < len(pcm)]
    assert events(np.split(pcm, cuts)) == events([pcm])
