"""Ids: all of one length, and no two the same."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.wire.items import LENGTH, maker
from voiceloop.wire.ledger import Ledger
from voiceloop.wire.responses import Response
from voiceloop.wire.server_events import OutputAudioDelta
from voiceloop.wire.settings import ResponseSettings

pytestmark = pytest.mark.pure


@given(st.integers(), st.sampled_from(["event", "item", "resp", "conv", "sess", "call"]))
def test_an_id_has_its_kind_and_always_the_same_length(seed: int, kind: str) -> None:
    new_id = maker(Random(seed))
    made = [new_id(kind) for _ in range(50)]
    assert all(one.startswith(f"{kind}_") and len(one) == LENGTH == 24 for one in made)
    assert all(one.isascii() and one.isprintable() for one in made)
    assert len(set(made)) == 50
    assert made[0] == maker(Random(seed))(kind)


def test_the_frames_of_a_response_begin_with_its_item() -> None:
    new_id = maker(Random(1))
    response = Response(new_id, ResponseSettings(), Ledger(new_id), conversation_id="conv")
    told = [*response.audio(b"1234"), *response.audio(b"56")]
    frames = [event.to_frame() for event in told if isinstance(event, OutputAudioDelta)]
    assert response.message_id is not None
    head = response.message_id.encode()
    assert frames == [head + b"\0\0\0\0" + b"1234", head + b"\2\0\0\0" + b"56"]
