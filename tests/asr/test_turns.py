"""Turn-taking: events in order, exact to the sample, and blind to how the audio was cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceloop.asr.turns import (
    HUSH_MS,
    STEP,
    SilenceLasts,
    SpeechDetector,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnEnded,
    TurnEvent,
)
from voiceloop.audio.frames import Framer, samples, silence
from voiceloop.settings.config import TurnConfig
from voiceloop.types import AudioFrame, Pcm

pytestmark = pytest.mark.pure

WINDOW = 512
MS = samples(1)


def ending(config: TurnConfig) -> SpeechDetector:
    """A detector that ends turns by itself."""
    return SpeechDetector(config, ends=True)


def run(
    probabilities: Sequence[float], config: TurnConfig, pcm: Pcm | None = None
) -> list[TurnEvent]:
    if pcm is None:
        pcm = silence(len(probabilities) * WINDOW)
    detector = ending(config)
    frames = Framer(size=WINDOW).feed(pcm)
    events = [e for f, p in zip(frames, probabilities, strict=True) for e in detector.feed(f, p)]
    return events + detector.flush()


def voice(length: int, level: float = 0.3) -> Pcm:
    """A loud tone."""
    return (level * np.sin(np.arange(length) * 0.2)).astype(np.float32)


def voiced(series: Sequence[float], config: TurnConfig) -> list[bool]:
    """The plain definition: which windows are speech."""
    found = [False]
    for probability in series:
        found.append(probability >= (config.release if found[-1] else config.threshold))
    return found[1:]


levels = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.34, 0.36, 0.49, 0.5, 1.0]))
stretches = st.tuples(levels, st.one_of(st.integers(1, 3), st.integers(1, 50)))
probabilities = st.lists(stretches, max_size=12).map(
    lambda runs: [level for level, length in runs for _ in range(length)][:160]
)
"""Stretches of one probability, from a single window to longer than any silence in `configs`."""
windows = st.integers(0, 12).map(lambda count: count * WINDOW // MS)
"""Milliseconds that are whole windows, where an end and a limit may coincide."""
configs = st.builds(
    TurnConfig,
    min_speech_ms=st.one_of(st.integers(0, 200), windows),
    pause_ms=st.one_of(st.integers(0, 200), windows),
    pause_below=st.just(0.0),
    hangover_ms=st.one_of(st.integers(0, 800), windows),
    pre_roll_ms=st.integers(0, 500),
    max_turn_s=st.one_of(st.floats(1, 3), st.just(1.024)),
)


@given(probabilities, configs)
def test_events_alternate_as_the_state_machine_says(
    series: list[float], config: TurnConfig
) -> None:
    follows: dict[type | None, set[type]] = {
        None: {SpeechStarted},
        SpeechStarted: {SpeechPaused, TurnEnded},
        SpeechPaused: {SpeechPaused, SpeechResumed, TurnEnded},
        SpeechResumed: {SpeechPaused, TurnEnded},
        TurnEnded: {SpeechStarted},
    }
    last: TurnEvent | None = None
    for event in run(series, config):
        assert type(event) in follows[type(last) if last else None]
        assert last is None or event.sample >= last.sample
        last = event
    assert last is None or isinstance(last, TurnEnded)


@given(probabilities, configs, st.integers(0, 160))
def test_after_forgetting_a_turn_begins_anew_and_with_nothing_from_before(
    series: list[float], config: TurnConfig, at: int
) -> None:
    frames = Framer(size=WINDOW).feed(silence(len(series) * WINDOW))
    detector = ending(config)
    pairs = list(zip(frames, series, strict=True))
    for pair in pairs[:at]:
        list(detector.feed(*pair))
    detector.forget()
    assert detector.flush() == []
    events = [event for pair in pairs[at:] for event in detector.feed(*pair)]
    if events:
        assert isinstance(events[0], SpeechStarted)
        assert events[0].start >= at * WINDOW


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
def test_a_turn_is_cut_in_the_first_window_that_completes_the_greatest_length(
    series: list[float], config: TurnConfig
) -> None:
    start = 0
    for event in run(series, config):
        if isinstance(event, SpeechStarted):
            start = event.start
        elif isinstance(event, TurnEnded):
            over = event.sample - start - samples(1000 * config.max_turn_s)
            assert over < WINDOW
            assert over >= 0 or not event.forced


@given(probabilities, configs)
def test_a_pause_is_noticed_in_the_first_window_that_completes_it(
    series: list[float], config: TurnConfig
) -> None:
    speech = voiced(series, config)
    for event in run(series, config):
        if isinstance(event, SpeechPaused):
            last = event.sample // WINDOW
            unvoiced = speech[:last][::-1].index(True)
            over = unvoiced * WINDOW - samples(config.pause_ms)
            assert unvoiced and over >= 0
            assert over < WINDOW or unvoiced == 1


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


@given(probabilities, st.lists(st.booleans(), min_size=160, max_size=160), st.integers(0, 200))
def test_a_quiet_window_that_the_network_doubts_begins_a_pause_and_ends_no_turn(
    series: list[float], loud: list[bool], pause_ms: int
) -> None:
    config = TurnConfig(pause_ms=pause_ms, pause_below=0.9, hangover_ms=200)
    noise = np.random.default_rng(0).standard_normal((len(series), WINDOW)).astype(np.float32)
    pcm = noise * np.where(loud[: len(series)], 0.1, 0.001).astype(np.float32)[:, None]
    speech = voiced(series, config)
    detector, began, paused, peak = ending(config), -1, False, False
    for index, p in enumerate(series):
        peak = (peak or loud[index]) if speech[index] else began >= 0 and peak
        doubted = speech[index] and p < 0.9 and peak and not loud[index]
        for event in detector.feed(AudioFrame(pcm[index], 16_000, index * WINDOW), p):
            match event:
                case SpeechStarted():
                    began, paused = index, False
                case SpeechPaused():
                    assert doubted or not speech[index]
                    paused = True
                case SpeechResumed():
                    assert speech[index] and not doubted
                    assert event.speech_start == index * WINDOW
                    paused = False
                case TurnEnded():
                    assert not speech[index]
                    began, peak = -1, False
        if 0 <= began < index and doubted:
            assert paused


@pytest.mark.slow
@settings(max_examples=200)
@given(
    probabilities, st.lists(st.sampled_from([0.0, 0.001, 0.02, 0.3]), min_size=320, max_size=320)
)
def test_no_turn_ends_behind_the_pause_that_was_noticed_last(
    series: list[float], loudness: list[float]
) -> None:
    # Whatever is decoded at a pause is decoded up to where that was noticed.
    noise = np.random.default_rng(0).standard_normal((len(series) * 2, WINDOW // 2))
    pcm = (noise * np.array(loudness)[: len(noise), None]).astype(np.float32).reshape(-1)
    paused: SpeechPaused | None = None
    for event in run(series, TurnConfig(hangover_ms=200), pcm):
        match event:
            case SpeechPaused():
                assert event.speech_end <= event.sample
                paused = event
            case TurnEnded() if paused and not event.forced:
                assert event.speech_end <= paused.sample
            case _:
                paused = None


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 30)), max_size=10),
    st.integers(0, 400),
    st.integers(1, 900),
)
def test_a_turn_ends_in_mid_window_where_it_would_end_with_the_window(
    runs: list[tuple[bool, int]], hangover_ms: int, step: int
) -> None:
    loud = [speaking for speaking, length in runs for _ in range(length)]
    noise = np.random.default_rng(0).standard_normal((len(loud), WINDOW))
    pcm = (noise * np.where(loud, 0.3, 0.001)[:, None]).astype(np.float32).reshape(-1)
    config = TurnConfig(hangover_ms=hangover_ms)
    whole = run([float(one) for one in loud], config, pcm)
    detector, framer, early = ending(config), Framer(size=WINDOW), list[TurnEvent]()
    for at in range(0, len(pcm), step):
        for frame in framer.feed(pcm[at : at + step]):
            early += detector.feed(frame, float(loud[frame.start // WINDOW]))
        early += detector.between(framer.rest)
    early += detector.flush()
    ends = [event for event in whole if isinstance(event, TurnEnded)]
    sooner = [event for event in early if isinstance(event, TurnEnded)]
    assert [event.speech_end for event in sooner] == [event.speech_end for event in ends]
    for soon, late in zip(sooner, ends, strict=True):
        assert late.sample - WINDOW < soon.sample <= late.sample
        assert (
            soon.forced
            or soon.sample >= soon.speech_end + samples(hangover_ms)
            or (soon.sample == len(pcm))
        )
    others = [event for event in whole if not isinstance(event, TurnEnded)]
    assert [event for event in early if not isinstance(event, TurnEnded)] == others


@pytest.mark.parametrize(("probability", "begins"), [(0.9, True), (0.99, False), (0.1, False)])
def test_a_pause_begins_in_mid_window_where_the_network_doubts(
    probability: float, begins: bool
) -> None:
    # Below `release` the network says itself that it is over, and the pause has its own length.
    detector = ending(TurnConfig(pause_ms=200, pause_below=0.95))
    last = 16 * WINDOW
    spoken = last + 4 * STEP
    pcm = np.concatenate((silence(10 * WINDOW), voice(spoken - 10 * WINDOW), silence(4 * WINDOW)))
    events: list[TurnEvent] = []
    for frame in Framer(size=WINDOW).feed(pcm[: last + WINDOW]):
        sure = float(frame.start >= 10 * WINDOW)
        events += detector.feed(frame, probability if frame.start == last else sure)
    assert [type(event) for event in events] == [SpeechStarted]
    for length in range(0, WINDOW, 16):
        rest = AudioFrame(pcm[last + WINDOW :][:length], 16_000, last + WINDOW)
        found = [*detector.between(rest)]
        if begins and rest.end - spoken >= samples(HUSH_MS):
            assert found == [SpeechPaused(rest.end, spoken)]
            return
        assert found == []
    assert not begins


def test_a_sound_in_mid_window_keeps_the_turn_open() -> None:
    pcm = np.concatenate((voice(20 * WINDOW), silence(4 * WINDOW)))
    detector = SpeechDetector(TurnConfig())
    for frame in Framer(size=WINDOW).feed(pcm[: 22 * WINDOW]):
        found = [*detector.feed(frame, float(np.abs(frame.pcm).max() > 0.05))]
    late = 22 * WINDOW
    assert found == [SilenceLasts(late, 20 * WINDOW)]
    (loud,) = detector.between(AudioFrame(voice(WINDOW - 1), 16_000, late))
    assert isinstance(loud, SilenceLasts) and not loud.reaches(64)
    (quiet,) = detector.between(AudioFrame(silence(0), 16_000, late))
    assert isinstance(quiet, SilenceLasts) and quiet.reaches(64) and not quiet.reaches(65)
    assert detector.end().sample == late


def test_the_beginning_includes_the_pre_roll_and_is_decided_after_min_speech() -> None:
    events = run([0.0] * 20 + [0.9] * 5, TurnConfig(min_speech_ms=64, pre_roll_ms=300))
    assert events[0] == SpeechStarted(22 * WINDOW, 20 * WINDOW - 300 * MS, 20 * WINDOW)


def test_speech_goes_on_at_a_probability_at_which_it_would_not_begin() -> None:
    config = TurnConfig(threshold=0.5, release=0.35, pause_below=0.0, hangover_ms=2000)
    assert run([0.4] * 10, config) == []
    begun = run([0.6, 0.6] + [0.4] * 10, config)
    assert [type(e) for e in begun] == [SpeechStarted, TurnEnded]
    # Once released, the lower level does not count as going on.
    paused = run([0.6, 0.6, 0.1] + [0.4] * 10, config)
    assert [type(e) for e in paused] == [SpeechStarted, SpeechPaused, TurnEnded]


@given(probabilities, configs, st.integers(0, 160), st.integers(0, 300))
def test_a_turn_ends_in_any_silence_and_the_next_begins_behind_it(
    series: list[float], config: TurnConfig, at: int, rest: int
) -> None:
    frames = Framer(size=WINDOW).feed(silence(len(series) * WINDOW))
    detector, lasts, taken, ended = SpeechDetector(config), SilenceLasts(0, 0), 0, False
    for frame, p in zip(frames, series, strict=True):
        if frame.start >= at * WINDOW and lasts.sample == frame.start and not ended:
            for event in detector.between(AudioFrame(silence(rest), 16_000, frame.start)):
                assert isinstance(event, SilenceLasts)
                if not event.quiet:
                    break
                lasts, ended = event, True
                assert detector.end() == TurnEnded(event.sample, event.speech_end)
                assert not [*detector.between(AudioFrame(silence(rest), 16_000, frame.start))]
                taken = event.speech_end
        for event in detector.feed(frame, p):
            match event:
                case SilenceLasts():
                    assert event.sample == frame.end and event.speech_end >= taken
                    lasts = event
                case SpeechStarted():
                    assert event.start >= taken
                case _:
                    pass


def test_a_stream_that_stops_ends_the_turn_in_progress_and_only_that() -> None:
    events = run([0.9] * 10, TurnConfig())
    assert [type(e) for e in events] == [SpeechStarted, TurnEnded]
    assert events[-1].sample == 10 * WINDOW
    assert run([0.0] * 10, TurnConfig()) == []


@given(
    st.integers(4000, 12_000),
    st.integers(8000, 20_000),
    st.floats(0.02, 0.9),
    st.sampled_from([0.0, 0.0001, 0.001]),
    st.integers(0, 3),
)
def test_the_end_of_speech_is_found_within_the_late_windows_to_the_step(
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
    # The last samples of a tone may be too near zero to be heard.
    assert -4 <= ended[0].speech_end - end <= STEP


@given(
    st.sampled_from([1, 20]),
    st.sampled_from([0.003, 0.1, 0.9]),
    st.sampled_from([0.003, 0.1, 0.9]),
    st.sampled_from([0.0, 0.0001]),
    st.integers(0, 3),
)
def test_what_was_heard_before_changes_nothing_once_it_is_over(
    before: int, loud: float, level: float, noise: float, late: int
) -> None:
    """Neither a click, for `before` of 1, nor a whole turn, however loud."""
    earlier = np.concatenate((voice(before * WINDOW, loud), silence(40 * WINDOW)))
    quiet = silence(20 * WINDOW)
    pcm = np.concatenate((quiet, voice(20 * WINDOW - 100, level), silence(100), quiet, quiet))
    pcm += noise * np.random.default_rng(0).standard_normal(len(pcm)).astype(np.float32)
    first = [1.0] * before + [0.0] * 40
    series = [0.0] * 20 + [1.0] * (20 + late) + [0.0] * (40 - late)

    def heard(detector: SpeechDetector) -> list[TurnEvent]:
        frames = [
            AudioFrame(pcm[at : at + WINDOW], 16_000, len(earlier) + at)
            for at in range(0, len(pcm), WINDOW)
        ]
        return [e for f, p in zip(frames, series, strict=True) for e in detector.feed(f, p)]

    used = ending(TurnConfig())
    frames = Framer(size=WINDOW).feed(earlier)
    ended = [e for f, p in zip(frames, first, strict=True) for e in used.feed(f, p)]
    assert bool(ended) == (before > 1)
    assert heard(used) == heard(ending(TurnConfig()))
