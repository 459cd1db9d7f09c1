"""The bookkeeping of a reply: what comes out of the queue, and what has been heard."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.audio.frames import samples
from voiceloop.audio.playback import AUDIBLE, FADE_MS, KEPT_S, AudioBlock, Playback
from voiceloop.types import Clause, Pcm, Span, SpeechChunk, SpokenWord

pytestmark = pytest.mark.pure

RATE = 16_000
FADE = samples(FADE_MS, RATE)


def noise(count: int, seed: int = 0) -> Pcm:
    """Loud noise: no sample is silent, and none looks like another."""
    draw = np.random.default_rng(seed)
    return (draw.choice((-1, 1), count) * draw.uniform(0.2, 0.9, count)).astype(np.float32)


def spoken(
    pcms: Sequence[Pcm], cuts: Sequence[Sequence[int]], *, rate: int = RATE, words: int = 3
) -> list[SpeechChunk]:
    """Clauses of `words` words of two tokens each, every clause cut into chunks at `cuts`."""
    chunks: list[SpeechChunk] = []
    for index, (pcm, where) in enumerate(zip(pcms, cuts, strict=True)):
        names = [f"w{index}{number}" for number in range(words)]
        spans = tuple(
            Span(4 * k, 4 * k + len(name), 2 * (index * words + k + 1))
            for k, name in enumerate(names)
        )
        clause = Clause(1, index, " ".join(names), " ".join(names), spans)
        ends = [(k + 1) * len(pcm) // words for k in range(words)]
        edges = sorted({0, len(pcm), *(cut % (len(pcm) + 1) for cut in where)})
        for start, end in pairwise(edges):
            ended = tuple(SpokenWord(0, at, k) for k, at in enumerate(ends) if start < at <= end)
            chunks.append(
                SpeechChunk(1, clause, pcm[start:end], rate, start, ended, end == len(pcm))
            )
    return chunks


def drain(playback: Playback, size: int = 320) -> list[AudioBlock]:
    blocks: list[AudioBlock] = []
    while block := playback.block(size):
        blocks.append(block)
    return blocks


def played(blocks: Sequence[AudioBlock]) -> Pcm:
    return np.concatenate([block.pcm for block in blocks] or [np.zeros(0, np.float32)])


def queued(chunks: Sequence[SpeechChunk], rate: int = RATE) -> Playback:
    playback = Playback(1, rate)
    for chunk in chunks:
        playback.push(chunk)
    playback.finish()
    playback.open = True
    return playback


cuts = st.lists(st.integers(0, 4000), max_size=4)


@given(
    st.integers(100, 3000),
    cuts,
    cuts,
    st.sampled_from([8_000, 16_000, 22_050, 24_000]),
    st.sampled_from([16_000, 48_000]),
)
def test_where_the_chunks_are_cut_makes_no_difference(
    length: int, first: list[int], second: list[int], source: int, sink: int
):
    pcms = [noise(1999), noise(length, seed=1)]
    whole = queued(spoken(pcms, [[], []], rate=source), sink)
    pieces = queued(spoken(pcms, [first, second], rate=source), sink)
    assert pieces.end == whole.end
    for playback in (whole, pieces):
        assert playback.end == pytest.approx((length + 1999) * sink / source, abs=2)
    for position in range(0, whole.end, 997):
        whole.position = pieces.position = position
        assert pieces.heard() == whole.heard()
    whole.position = pieces.position = 0
    assert np.array_equal(played(drain(pieces)), played(drain(whole)))
    assert pieces.heard() == whole.heard()
    assert pieces.heard().complete
    assert pieces.heard().tokens == 12


@given(st.lists(st.integers(1, 700), min_size=1), cuts)
def test_blocks_of_any_size_hand_out_every_sample_once_and_in_order(
    sizes: list[int], where: list[int]
):
    pcm = noise(3000)
    playback = queued(spoken([pcm], [where]))
    blocks: list[AudioBlock] = []
    while block := playback.block(sizes[len(blocks) % len(sizes)]):
        assert block.start == sum(len(earlier.pcm) for earlier in blocks)
        blocks.append(block)
    assert np.array_equal(played(blocks), pcm)
    assert playback.exhausted


def test_long_replies_hand_out_every_sample_though_old_ones_are_forgotten():
    pcm = noise(20 * RATE)
    playback = queued(spoken([pcm], [[]]))
    assert np.array_equal(played(drain(playback)), pcm)
    assert playback.end - playback._sound.pcm.start <= KEPT_S * RATE + 320


@given(st.integers(KEPT_S * 50, 900))
def test_what_a_speaker_holds_can_be_taken_back_at_any_time(blocks: int):
    pcm = noise(20 * RATE)
    playback = queued(spoken([pcm], [[]]))
    for _ in range(blocks):
        playback.block(320)
    playback.rewind(KEPT_S * RATE)
    again = playback.block(320)
    assert again is not None
    assert np.array_equal(again.pcm, pcm[again.start : again.start + 320])


@given(st.integers(0, 3000), st.integers(0, 320))
def test_words_are_heard_once_their_last_sample_has_been_played(position: int, unplayed: int):
    playback = queued(spoken([noise(3000)], [[]]))
    if position:
        playback.block(position)
    heard = playback.heard(unplayed)
    count = max(0, position - unplayed)
    assert heard.samples == count
    assert heard.words == ("w00", "w01", "w02")[: count // 1000]
    assert heard.tokens == 2 * (count // 1000)
    assert heard.complete == (count == 3000)


def test_a_paused_reply_goes_on_where_it_stopped_with_a_fade():
    pcm = noise(3000)
    playback = queued(spoken([pcm], [[]]))
    playback.block(1000)
    playback.paused = True
    assert playback.block(320) is None
    playback.rewind(300)
    playback.resume()
    block = playback.block(500)
    assert block is not None and block.start == 700
    assert np.array_equal(block.pcm[FADE:], pcm[700 + FADE : 1200])
    assert np.all(np.abs(block.pcm[:FADE]) < np.abs(pcm[700 : 700 + FADE]))
    following = playback.block(100)
    assert following is not None
    assert np.array_equal(following.pcm, pcm[1200:1300])


def test_a_stopped_reply_gives_and_takes_nothing_more():
    chunks = spoken([noise(900), noise(900)], [[], []])
    playback = queued(chunks[:1])
    playback.block(320)
    playback.stopped = True
    playback.push(chunks[1])
    assert playback.block(320) is None
    assert playback.heard().samples == 320
    assert playback.end == 900


def test_silence_before_the_first_audible_sample_does_not_count_as_sound():
    quiet = np.full(500, AUDIBLE * 0.9, np.float32)
    playback = queued(spoken([np.concatenate((quiet, noise(500)))], [[]]))
    assert [block.audible for block in drain(playback)] == [None, 180, None, None]
    assert playback.first_audible == 500
    playback.rewind(400)
    assert playback.first_audible == 500
    playback.rewind(150)
    assert playback.first_audible is None
    block = playback.block(320)
    assert block is not None and block.audible == 50


def test_each_clause_is_announced_once_even_if_its_beginning_is_taken_back():
    playback = queued(spoken([noise(400), noise(400)], [[], []]))
    blocks = [playback.block(320), playback.block(320)]
    assert [[clause.index for clause in block.clauses] for block in blocks if block] == [[0], [1]]
    playback.rewind(300)
    assert [clause for block in drain(playback, 40) for clause in block.clauses] == []


def test_a_clause_that_breaks_off_does_not_stop_the_next():
    first = spoken([noise(600), noise(600)], [[300], [300]])
    playback = queued([first[0], *first[2:]], 48_000)
    assert playback.end == pytest.approx(900 * 3, abs=3)
    assert len(played(drain(playback, 960))) == playback.end
    assert playback.heard().words == ("w00", "w10", "w11", "w12")
