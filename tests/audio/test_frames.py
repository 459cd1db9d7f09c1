"""Audio: chunking never shows, levels and fades do what they say."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.sounds import chunks, sizes, tone
from voiceloop.audio.frames import (
    KNEE,
    PCM16_SCALE,
    SILENCE_DBFS,
    Channels,
    Framer,
    HighPass,
    LiveResampler,
    Mixer,
    Resampler,
    SampleBuffer,
    dbfs,
    fade_in,
    fade_out,
    from_pcm16,
    levels,
    louder,
    silence,
    to_pcm16,
)
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure


@given(st.integers(0, 9000), sizes, st.integers(1, 700))
def test_any_chunking_gives_the_same_frames(length: int, lengths: list[int], size: int) -> None:
    pcm = np.arange(length, dtype=np.float32)
    framer = Framer(16_000, size)
    frames = [frame for chunk in chunks(pcm, lengths) for frame in framer.feed(chunk)]
    assert all(len(frame.pcm) == size for frame in frames)
    rest = framer.rest
    assert len(rest.pcm) < size
    frames += [rest] if len(rest.pcm) else []
    assert [frame.start for frame in frames] == list(range(0, length, size))
    assert np.array_equal(np.concatenate([silence(0)] + [frame.pcm for frame in frames]), pcm)
    assert framer.position == length - len(rest.pcm)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=200), st.floats(0.1, 8))
def test_what_is_made_louder_keeps_its_shape_and_is_never_cut_off(
    values: list[float], gain: float
) -> None:
    pcm = np.array(sorted(values), np.float32)
    loud = louder(pcm, gain, gain)
    assert loud.dtype == np.float32 and np.abs(loud).max() <= 1
    assert np.all(np.diff(loud) >= -1e-6) and np.all(
        np.sign(loud) == np.sign(pcm * np.float32(gain))
    )
    soft = np.abs(pcm) * gain < KNEE
    assert np.allclose(loud[soft], pcm[soft] * gain, atol=1e-5)


def test_a_gain_changes_without_a_click() -> None:
    pcm = np.full(480, 0.1, np.float32)
    changed = np.concatenate([louder(pcm, 1.0, 1.0), louder(pcm, 1.0, 4.0), louder(pcm, 4.0, 4.0)])
    assert np.abs(np.diff(changed)).max() < 0.001
    assert np.array_equal(louder(pcm, 1.0, 1.0), pcm)


rates = st.sampled_from([8000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000, 192_000])


@settings(deadline=None, max_examples=40)
@given(rates, rates, sizes)
def test_any_chunking_gives_the_same_resampled_audio(
    source: int, target: int, lengths: list[int]
) -> None:
    pcm = np.random.default_rng(0).standard_normal(source // 10).astype(np.float32)

    def resampled(pieces: Sequence[Pcm]) -> Pcm:
        resampler = Resampler(source, target)
        return np.concatenate([resampler.feed(piece) for piece in pieces] + [resampler.flush()])

    whole = resampled([pcm])
    assert np.array_equal(resampled(chunks(pcm, lengths)), whole)
    assert abs(len(whole) - len(pcm) * target / source) <= 1


@settings(max_examples=50)
@given(rates, rates, st.lists(st.integers(0, 3000), min_size=1, max_size=12))
def test_whoever_waits_gets_every_sample_at_once_in_any_chunking(
    source: int, target: int, lengths: list[int]
) -> None:
    pcm = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    whole = LiveResampler(source, target).feed(pcm)
    live, given, pieces = LiveResampler(source, target), 0, list[Pcm]()
    for piece in chunks(pcm, lengths):
        pieces.append(live.feed(piece))
        given += len(piece)
        assert sum(map(len, pieces)) == math.ceil(given * target / source)
    assert np.array_equal(np.concatenate([silence(0), *pieces]), whole)


@given(rates, rates, st.lists(st.integers(0, 500), min_size=1, max_size=4))
def test_phases_one_by_one_give_what_all_at_once_do(
    source: int, target: int, lengths: list[int]
) -> None:
    pcm = np.random.default_rng(0).standard_normal(sum(lengths)).astype(np.float32)

    def resampled(few: int) -> Pcm:
        live = LiveResampler(source, target)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("voiceloop.audio.frames.FEW_PHASES", few)
            return np.concatenate([silence(0), *map(live.feed, chunks(pcm, lengths))])

    assert np.allclose(resampled(0), resampled(1000), atol=1e-5)


@given(st.integers(0, 500), st.integers(1, 100), st.sampled_from([0.0, 1e-7, 0.01, 1.0]))
def test_levels_are_those_of_the_pieces(length: int, step: int, loud: float) -> None:
    pcm = (loud * np.random.default_rng(0).standard_normal(length)).astype(np.float32)
    pieces = [dbfs(pcm[at : at + step]) for at in range(0, length, step)]
    assert levels(pcm, step) == pytest.approx(pieces, abs=1e-6)


@pytest.mark.parametrize("source", [8000, 24_000, 44_100, 48_000])
def test_live_resampling_keeps_a_tone_and_is_late_by_what_it_says(source: int) -> None:
    live = LiveResampler(source, 16_000).feed(tone(0.5, source))
    late = round(LiveResampler.DELAY_S * 16_000)
    assert np.abs(live[late:] - tone(0.5)[:-late])[400:].max() < 0.02
    assert np.abs(live[late - 8 :] - tone(0.5)[: 8 - late])[400:].max() > 0.1


def test_live_resampling_lets_nothing_through_that_the_rate_cannot_hold() -> None:
    shrill = (0.5 * np.sin(2 * np.pi * 9000 * np.arange(24_000) / 24_000)).astype(np.float32)
    assert dbfs(LiveResampler(24_000, 16_000).feed(shrill)[200:]) < -80


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 9000)), max_size=12))
def test_a_sample_buffer_holds_exactly_the_samples_that_were_not_dropped(
    steps: list[tuple[int, int]],
) -> None:
    buffer, expected, start = SampleBuffer(50), silence(0), 50
    for add, drop in steps:
        piece = np.arange(buffer.end, buffer.end + add, dtype=np.float32)
        buffer.append(piece)
        expected = np.append(expected, piece)
        buffer.drop(buffer.start + drop)
        expected, start = expected[drop:], start + min(drop, len(expected))
        assert (buffer.start, buffer.end) == (start, start + len(expected))
        assert np.array_equal(buffer.read(buffer.start, buffer.end), expected)
    first, last = buffer.start, buffer.end
    for outside in ((first - 1, last), (first, last + 1), (first + 1, first)):
        with pytest.raises(IndexError):
            buffer.read(*outside)


def test_levels_are_in_decibels_below_full_scale() -> None:
    assert dbfs(np.ones(100, np.float32)) == 0.0
    assert dbfs(np.full(100, 0.1, np.float32)) == pytest.approx(-20, abs=1e-4)
    assert dbfs(silence(100)) == dbfs(silence(0)) == SILENCE_DBFS


@given(st.integers(0, 50), st.integers(0, 80))
def test_fades_touch_only_their_own_samples_and_reach_silence(length: int, fade: int) -> None:
    pcm = np.ones(length, np.float32)
    faded = fade_in(pcm, fade)
    assert np.array_equal(fade_out(pcm, fade), faded[::-1])
    assert pcm.min(initial=1.0) == 1.0
    assert faded[fade:].min(initial=1.0) == 1.0
    touched = min(length, fade)
    assert faded[:touched] == pytest.approx(np.arange(touched) / max(touched, 1))


@given(npst.arrays(np.int16, st.integers(0, 200)))
def test_sixteen_bit_samples_survive_the_way_there_and_back(integers: np.ndarray) -> None:
    assert np.array_equal(to_pcm16(from_pcm16(integers)), integers)


@given(npst.arrays(np.float32, st.integers(0, 50), elements=st.floats(-1, 1, width=32)))
def test_sixteen_bits_are_the_nearest_that_there_are(pcm: Pcm) -> None:
    half = 0.5 / PCM16_SCALE
    assert np.abs(from_pcm16(to_pcm16(pcm)) - np.minimum(pcm, 1 - 2 * half)).max(initial=0) <= half


# A buffer with a limit gives back what was put in, once and in order, or says what is missing.

CAPACITY = 10

steps = st.lists(
    st.tuples(st.sampled_from(["append", "take", "take_all", "cut"]), st.integers(0, 25)),
    max_size=30,
)


def numbered(start: int, count: int) -> Pcm:
    """Samples that tell their own index."""
    return np.arange(start, start + count, dtype=np.float32)


@given(steps)
def test_it_is_a_queue_that_loses_the_oldest(script: list[tuple[str, int]]):
    buffer, waiting, written = SampleBuffer(most=CAPACITY), numbered(0, 0), 0
    for what, count in script:
        if what == "append":
            pcm, written = numbered(written, count), written + count
            buffer.append(pcm)
            waiting = np.append(waiting, pcm)[-CAPACITY:]
        elif what == "take":
            block = np.full((count, 2), -1.0, np.float32)
            taken = buffer.take(block[:, 0])
            assert taken == min(count, len(waiting))
            assert block[:taken, 0] == pytest.approx(waiting[:taken])
            assert np.all(block[taken:] == -1) and np.all(block[:, 1] == -1)
            waiting = waiting[taken:]
        elif what == "take_all":
            start, pcm = buffer.take_all()
            assert start == buffer.end - len(waiting)
            assert pcm == pytest.approx(waiting)
            waiting = waiting[:0]
        else:
            start = buffer.start
            assert buffer.cut(count) == max(0, len(waiting) - count)
            assert buffer.start == start
            kept = waiting[:count]
            waiting = kept * np.arange(len(kept), dtype=np.float32)[::-1] / max(1, len(kept))
        assert len(buffer) == len(waiting) == buffer.end - buffer.start


# ---- what stays the same


def spoken(seconds: float, level: float = 0.1) -> Pcm:
    """Something between 90 and 3000 Hz."""
    at = np.arange(round(seconds * 16_000)) / 16_000
    hertz = np.array([[90.0], [210], [440], [1300], [3000]])
    return (level * np.sin(2 * np.pi * hertz * at + hertz).mean(axis=0)).astype(np.float32)


@given(sizes, st.floats(-0.9, 0.9), st.sampled_from([8_000, 16_000, 44_100, 192_000]))
def test_taking_an_offset_out_does_not_depend_on_the_chunks(
    lengths: list[int], offset: float, rate: int
) -> None:
    pcm = spoken(0.6) + np.float32(offset)
    whole = HighPass(rate).feed(pcm)
    high_pass = HighPass(rate)
    pieces = np.concatenate([high_pass.feed(chunk) for chunk in chunks(pcm, lengths)])
    assert pieces == pytest.approx(whole, abs=1e-6)
    assert len(whole) == len(pcm) and not len(HighPass(rate).feed(pcm[:0]))


@given(st.floats(-0.9, 0.9), st.sampled_from([1e-4, 0.01, 0.3]))
def test_an_offset_is_taken_out_from_the_first_sample_on_and_what_sounds_stays(
    offset: float, level: float
) -> None:
    sound = spoken(2.0, level)
    without, plain = HighPass().feed(sound + np.float32(offset)), HighPass().feed(sound)
    assert np.abs(without - plain).max() < 1e-6
    power = float(np.mean(plain[1600:] ** 2) / np.mean(sound[1600:] ** 2))
    assert power == pytest.approx(1.0, abs=0.03)
    assert not HighPass().feed(np.full(5000, offset, np.float32)).round(6).any()


def test_an_offset_that_changes_is_forgotten_soon() -> None:
    pcm = np.repeat(np.array([0.0, 0.3, -0.2], np.float32), 8000)
    rest = np.abs(HighPass().feed(pcm)).reshape(3, -1)[:, 1600:]
    assert rest.max() < 1e-4


def test_hours_lose_no_precision() -> None:
    high_pass, sound = HighPass(), spoken(1.0) + np.float32(0.05)
    first = high_pass.feed(sound)
    for _ in range(60):
        last = high_pass.feed(sound)
    assert np.abs(last - first)[1600:].max() < 1e-4


# ---- several channels into one


def stereo(left: Pcm, right: Pcm) -> Channels:
    return np.column_stack((left, right)).astype(np.float32)


def noise(seconds: float, seed: int, rate: int = 16_000) -> Pcm:
    """Something with more of low tones than of high ones, as voices are."""
    white = np.random.default_rng(seed).normal(0, 1, round(seconds * rate) + 16)
    return (0.1 * np.convolve(white, np.hanning(17) / 4, "valid")).astype(np.float32)


def share(found: Pcm, sound: Pcm) -> float:
    """Part of the power of `sound` that is found, once there was time to decide."""
    settled = len(found) // 4
    return float(np.mean(found[settled:] ** 2) / np.mean(sound[settled:] ** 2))


@given(sizes, st.sampled_from([-1.0, -0.6, 0.0, 0.5, 1.0]), st.sampled_from([8_000, 44_100]))
def test_mixing_does_not_depend_on_the_chunks(lengths: list[int], gain: float, rate: int) -> None:
    sound = noise(0.7, 1, rate)
    block = stereo(sound, gain * np.roll(sound, 2))
    mixer, whole = Mixer(rate), Mixer(rate).feed(block)
    cuts = np.cumsum(np.resize(lengths, len(block)))
    pieces = [mixer.feed(piece) for piece in np.split(block, cuts[cuts < len(block)])]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert len(whole) == len(block)


@given(st.floats(0.3, 3.0), st.floats(1e-4, 1.0), st.floats(-0.5, 0.5), st.integers(0, 1))
def test_channels_that_cancel_each_other_give_the_louder(
    ratio: float, level: float, offset: float, first: int
) -> None:
    left = level * noise(1.0, 2)
    channels = [left + offset, -ratio * left + offset]
    found = Mixer(16_000).feed(stereo(*channels[:: 1 if first else -1]))
    louder = max(channels, key=lambda one: float(np.var(one)))
    # Of two that differ much the mean has enough, and of two that are alike either is right.
    softer = min(ratio, 1 / ratio)
    if softer > 0.8:
        assert share(found - offset, left) > 0.6
    elif softer > 0.6:
        assert np.array_equal(found[4000:], louder.astype(np.float32)[4000:])
    assert share(found - offset, np.asarray(louder - offset)) > 0.03


@pytest.mark.parametrize("late", [0, 1, 3])
@pytest.mark.parametrize("gain", [-1.0, -0.8])
def test_a_channel_that_is_turned_round_and_late_takes_nothing_away(late: int, gain: float) -> None:
    sound = noise(2.0, 3)
    found = Mixer(16_000).feed(stereo(sound, gain * np.roll(sound, late)))
    assert share(found, sound) > 0.9


@pytest.mark.parametrize("other", ["silent", "the same", "softer", "another sound", "late"])
def test_of_all_others_the_mean_is_taken_to_the_last_bit(other: str) -> None:
    sound = noise(2.0, 4)
    right = {
        "silent": 0 * sound,
        "the same": sound,
        "softer": 0.1 * sound,
        "another sound": noise(2.0, 5),
        "late": np.roll(sound, 3),
    }[other]
    block = stereo(sound, right)
    assert np.array_equal(Mixer(16_000).feed(block), block.mean(axis=1, dtype=np.float32))


def test_what_is_decided_changes_without_a_click() -> None:
    # 110 Hz is not at zero where a step ends.
    sound = (0.3 * np.sin(2 * np.pi * 110 * np.arange(32_000) / 16_000)).astype(np.float32)
    right = np.concatenate((-sound[:16_000], sound[16_000:]))
    found = Mixer(16_000).feed(stereo(sound, right))
    assert np.abs(np.diff(found)).max() < 0.03
    assert share(found[:16_000], sound[:16_000]) > 0.95 < share(found[16_000:], sound[16_000:])
