"""A ring gives back what was put in, once and in order, or says what is missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.ring import Ring
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure

CAPACITY = 10

steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "take", "take_all", "reserve", "cut"]), st.integers(0, 25)
    ),
    max_size=30,
)


def numbered(start: int, count: int) -> Pcm:
    """Samples that tell their own index."""
    return np.arange(start, start + count, dtype=np.float32)


@given(steps)
def test_it_is_a_queue_that_loses_the_oldest(script: list[tuple[str, int]]):
    ring, waiting, capacity, written = Ring(CAPACITY), numbered(0, 0), CAPACITY, 0
    for what, count in script:
        if what == "append":
            pcm, written = numbered(written, count), written + count
            ring.append(pcm)
            waiting = np.append(waiting, pcm)[-capacity:]
        elif what == "take":
            into = np.full(count, -1.0, np.float32)
            taken = ring.take(into)
            assert taken == min(count, len(waiting))
            assert into[:taken] == pytest.approx(waiting[:taken])
            assert np.all(into[taken:] == -1), "nothing else is touched"
            waiting = waiting[taken:]
        elif what == "take_all":
            start, pcm = ring.take_all()
            assert start == ring.end - len(waiting)
            assert pcm == pytest.approx(waiting)
            waiting = waiting[:0]
        elif what == "reserve":
            ring.reserve(count)
            if len(waiting) + count > capacity:
                capacity = 2 * (len(waiting) + count)
        else:
            start = ring.start
            assert ring.cut(count) == max(0, len(waiting) - count)
            assert ring.start == start
            kept = waiting[:count]
            waiting = kept * np.arange(len(kept), dtype=np.float32)[::-1] / max(1, len(kept))
        assert len(ring) == len(waiting) == ring.end - ring.start


def test_indices_show_what_was_lost():
    ring = Ring(CAPACITY)
    ring.append(numbered(0, 4))
    ring.append(numbered(4, 13))
    start, pcm = ring.take_all()
    assert (start, pcm.tolist()) == (7, numbered(7, 10).tolist())


def test_with_enough_reserved_nothing_is_lost():
    ring = Ring(CAPACITY)
    for start in (0, 30, 60):
        ring.reserve(30)
        ring.append(numbered(start, 30))
    start, pcm = ring.take_all()
    assert (start, pcm.tolist()) == (0, numbered(0, 90).tolist())


def test_a_column_of_a_wider_block_can_be_filled():
    ring, block = Ring(CAPACITY), np.zeros((6, 2), np.float32)
    ring.append(numbered(1, 4))
    assert ring.take(block[:, 0]) == 4
    assert block[:, 0].tolist() == [1, 2, 3, 4, 0, 0]
    assert not block[:, 1].any()
