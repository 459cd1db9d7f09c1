"""Passes at a place: the same logits as those that follow a cache, in shapes that never change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.llm.conftest import KINDS, WINDOWED, near
from voiceloop.llm.model.attention import SlotPosition, behind, hidden
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.model.decoder import Decoder

pytestmark = pytest.mark.models
few = settings(max_examples=15)
REACH = 64


def place(slots: Slots, slot: int, start: int, reach: int = REACH) -> SlotPosition:
    return SlotPosition(slots, torch.tensor([slot]), torch.tensor([start]), reach)


def placed(model: Decoder, slots: Slots, slot: int, pieces: Sequence[Tensor], start: int = 0):
    rows = []
    for piece in pieces:
        rows.append(model.forward_at(piece, place(slots, slot, start), len(piece)).clone())
        start += len(piece)
    return torch.cat(rows)


@pytest.mark.parametrize("kind", KINDS + WINDOWED)
@few
@given(data=st.data())
def test_any_split_at_a_place_gives_the_logits_of_one_pass(workshop, kind, data):
    token = st.integers(0, workshop.vocab - 1)
    model, slots = workshop.decoder(kind), Slots(2, 80)
    sequences = data.draw(
        st.lists(st.lists(token, min_size=1, max_size=40), min_size=1, max_size=2)
    )
    for slot, ids in enumerate(sequences):
        cuts = sorted(data.draw(st.sets(st.integers(1, 40))) & {*range(1, len(ids))})
        pieces = torch.tensor(ids).tensor_split(cuts)
        whole = model.forward(torch.tensor(ids), KvCache(64), len(ids))
        assert near(placed(model, slots, slot, pieces), whole)


@given(
    rows=st.integers(1, 9),
    before=st.integers(0, 9),
    window=st.none() | st.integers(1, 12),
    fold=st.integers(1, 3),
)
def test_the_quick_way_to_a_mask_gives_the_mask(rows, before, window, fold):
    places = torch.arange(before + rows)
    plain = hidden(places[before:], places, window, fold, torch.float32)
    assert torch.equal(behind(rows, before + rows, window, fold, plain), plain)


def test_a_pass_sees_nothing_beyond_its_own_rows(workshop):
    model, slots = workshop.decoder(), Slots(1, 80)
    ids = torch.arange(20) * 7 % workshop.vocab
    clean = placed(model, slots, 0, [ids])
    with torch.inference_mode():
        for layer in slots._layers.values():
            for buffer in layer:
                buffer.normal_()
    assert torch.equal(placed(model, slots, 0, [ids]), clean)
