"""A client as a speaker: sent ahead of time, once each, and played when it says so."""

from __future__ import annotations

import anyio
import numpy as np
import pytest

from voiceloop.server.audio import MAX_LAG_S, RATE, SocketSpeaker
from voiceloop.types import Pcm

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


@pytest.mark.parametrize(("played", "lag"), [(0, MAX_LAG_S), (3 * RATE, 0.0), (RATE, 1.0)])
async def test_a_client_is_believed_within_reason(played: int, lag: float) -> None:
    speaker = SocketSpeaker(lambda pcm: None)
    speaker.write(numbered(0, 2 * RATE))
    await anyio.sleep(2)
    speaker.played(played, 2 * RATE)
    assert speaker.due() - anyio.current_time() == pytest.approx(lag)


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
