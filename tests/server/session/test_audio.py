"""A client as a speaker: sent ahead of time, once each, and played when it says so; and the formats
of what it sends and is sent."""

from __future__ import annotations

import anyio
import numpy as np
import pytest

from voiceloop.audio.g711 import encode
from voiceloop.server.session.audio import (
    MISSING_S,
    RATE,
    ResponseEncoder,
    SocketMicrophone,
    SocketSpeaker,
    from_wire,
)
from voiceloop.types import Pcm
from voiceloop.wire.settings import AudioFormat, PcmaFormat, PcmFormat, PcmuFormat, length

pytestmark = pytest.mark.virtual

AHEAD_S = SocketSpeaker.ahead_s


def numbered(start: int, count: int) -> Pcm:
    return np.arange(start, start + count, dtype=np.float32)


async def test_audio_goes_out_so_much_ahead_of_time_however_late_the_client_plays() -> None:
    sent: list[Pcm] = []
    speaker, begun = SocketSpeaker(sent.append), anyio.current_time()
    for seconds, lag in ((2, 0.0), (4, 0.3)):
        for _ in range(100):
            await speaker.room()
            speaker.write(numbered(0, 480))
            assert speaker.due() - lag - anyio.current_time() <= AHEAD_S + 0.02 + 1e-9
        assert speaker.due() == pytest.approx(begun + seconds + lag)
        total = sum(map(len, sent))
        not_due = (speaker.due() - lag - anyio.current_time()) * RATE
        speaker.played(round(total - not_due - 0.3 * RATE), total)
    assert sum(map(len, sent)) == 200 * 480


async def test_what_a_late_client_has_not_played_is_taken_back_and_sent_once_only() -> None:
    sent: list[Pcm] = []
    speaker = SocketSpeaker(sent.append)
    speaker.begin()
    speaker.write(numbered(0, RATE))
    await anyio.sleep(0.5)
    assert speaker.cut(0) == RATE // 2
    speaker.write(numbered(RATE // 2, RATE // 2))
    assert sum(map(len, sent)) == RATE, "the client has them still"
    speaker.played(RATE // 4, RATE)
    assert speaker.due() - anyio.current_time() == pytest.approx(0.5 + 0.25)
    assert speaker.cut(0) == pytest.approx(0.75 * RATE, abs=1), "as late as it plays"
    speaker.begin()
    speaker.write(numbered(0, 480))
    assert sum(map(len, sent)) == RATE + 480, "what is new is sent"


async def test_after_a_pause_no_more_is_taken_back_than_was_written_since() -> None:
    speaker = SocketSpeaker(lambda pcm: None)
    speaker.write(numbered(0, RATE))
    await anyio.sleep(1)
    speaker.played(RATE // 2, RATE)
    await anyio.sleep(5)
    begun = anyio.current_time()
    assert speaker.write(numbered(0, 480)) == pytest.approx(begun + 0.5)
    assert speaker.write(numbered(0, 480)) == pytest.approx(begun + 0.52)
    assert speaker.cut(0) == 960


# ---- the formats of audio on the wire

PCM, MU, A = PcmFormat(), PcmuFormat(), PcmaFormat()
FORMATS: list[AudioFormat] = [PCM, MU, A]


def tone(seconds: float, rate: int, hertz: float = 440.0) -> Pcm:
    return (0.3 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype("f4")


def sent(pcm: Pcm, format: AudioFormat) -> bytes:
    """Samples at the rate of a format, as a client sends them."""
    integers = np.rint(pcm * 32767).astype(np.int16)
    if format == PCM:
        return integers.tobytes()
    return encode(integers, "mu" if format == MU else "a")


class Ear:
    """Keeps what a microphone gives."""

    def __init__(self) -> None:
        self.microphone = SocketMicrophone()
        self.frames: list[Pcm] = []

    async def hears(self) -> Pcm:
        """All that has come, at 16 kHz; whole frames alone."""
        with anyio.move_on_after(1.0):
            async for frame in self.microphone.frames():
                self.frames.append(frame.pcm)
        assert self.microphone.backlog_s == 0
        return np.concatenate(self.frames)


def level(pcm: Pcm) -> float:
    return float(np.sqrt(np.mean(np.square(pcm))))


@pytest.mark.parametrize("format", FORMATS)
async def test_a_second_is_a_second_in_every_format(format: AudioFormat) -> None:
    ear, whole = Ear(), sent(tone(1.0, format.rate), format)
    ear.microphone.take(format)
    assert len(whole) == format.rate * format.sample_bytes
    for at in range(0, len(whole), 158):
        ear.microphone.feed(whole[at : at + 158])
    assert ear.microphone.backlog_s == pytest.approx(1.0)
    heard = await ear.hears()
    assert len(heard) == 16_000 == ear.microphone.position
    assert level(heard - tone(1.002, 16_000)[-16_000:]) < 0.3  # it is 2 ms late
    assert level(heard[1600:]) == pytest.approx(0.3 / np.sqrt(2), rel=0.02)


async def test_another_format_holds_for_what_is_fed_after_it_alone() -> None:
    ear, order = Ear(), [MU, MU, PCM, A, PCM, MU]
    for format in order:
        ear.microphone.take(format)
        ear.microphone.feed(sent(tone(0.5, format.rate), format))
    assert ear.microphone.backlog_s == pytest.approx(0.5 * len(order))
    heard = await ear.hears()
    assert len(heard) == 8000 * len(order)
    for part in np.split(heard, len(order)):
        assert level(part[800:]) == pytest.approx(0.3 / np.sqrt(2), rel=0.02)


@pytest.mark.parametrize("lacks", [True, False])
@pytest.mark.parametrize("format", FORMATS)
async def test_within_a_turn_silence_stands_for_what_does_not_come(
    format: AudioFormat, lacks: bool
) -> None:
    microphone = SocketMicrophone(lacks=lambda: lacks)
    microphone.take(format)
    microphone.feed(sent(tone(0.5, format.rate), format))
    with anyio.move_on_after(2.5 * MISSING_S):
        async for frame in microphone.frames():
            assert frame.start < 8100 or level(frame.pcm) < 0.01
    assert microphone.position == 8000 + lacks * round(2 * MISSING_S * 16_000)


@pytest.mark.parametrize("former", FORMATS)
@pytest.mark.parametrize("format", FORMATS)
async def test_what_is_cleared_takes_no_format_with_it(
    former: AudioFormat, format: AudioFormat
) -> None:
    ear = Ear()
    ear.microphone.take(former)
    ear.microphone.feed(sent(tone(0.5, former.rate), former))
    ear.microphone.take(format)
    ear.microphone.feed(sent(tone(0.5, format.rate), format))
    ear.microphone.clear()
    assert ear.microphone.backlog_s == 0
    ear.microphone.feed(sent(tone(0.5, format.rate), format))
    heard = await ear.hears()
    assert len(heard) == 8000
    assert level(heard[800:]) == pytest.approx(0.3 / np.sqrt(2), rel=0.02)


@pytest.mark.parametrize("format", FORMATS)
def test_a_response_is_as_long_and_as_loud_in_every_format(format: AudioFormat) -> None:
    encoder, whole = ResponseEncoder(format), tone(1.0, RATE)
    made = b"".join(encoder.feed(whole[at : at + 480]) for at in range(0, RATE, 480))
    assert len(made) == format.rate * format.sample_bytes
    assert length(made, format) == RATE
    heard = from_wire(made, format)
    assert level(heard[format.rate // 100 :]) == pytest.approx(0.3 / np.sqrt(2), rel=0.01)
    assert encoder.feed(np.full(480, 7.0, np.float32)), "what is too loud is clipped"
