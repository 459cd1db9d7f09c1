"""Passes at a place: the same logits as those that follow a cache, in shapes that never change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention import varlen

from tests.llm.conftest import KINDS, WINDOWED, near
from voiceloop.llm.attention import Place, behind, by_lengths, hidden, masked
from voiceloop.llm.cache import KvCache, Slots
from voiceloop.llm.decoder import Decoder

pytestmark = pytest.mark.models
few = settings(max_examples=15)
REACH = 64


def place(slots: Slots, slot: int, start: int, reach: int = REACH) -> Place:
    return Place(slots, torch.tensor([slot]), torch.tensor([start]), reach)


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


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_written_where_they_are_said_to_be_and_nowhere_else(workshop, kind):
    model, slots = workshop.decoder(kind), Slots(2, 80)
    ids = torch.arange(1, 10) * 5
    placed(model, slots, 0, [ids])
    buffers = [buffer for layer in slots._layers.values() for buffer in layer]
    before = [buffer.clone() for buffer in buffers]
    placed(model, slots, 1, [ids[:2]], start=4)
    for buffer, old in zip(buffers, before, strict=True):
        changed = (buffer != old).flatten(2).any(-1)
        assert changed.nonzero().tolist() == [[1, 4], [1, 5]]


def test_a_pass_sees_nothing_beyond_its_own_rows(workshop):
    model, slots = workshop.decoder(), Slots(1, 80)
    ids = torch.arange(20) * 7 % workshop.vocab
    clean = placed(model, slots, 0, [ids])
    with torch.inference_mode():
        for layer in slots._layers.values():
            for buffer in layer:
                buffer.normal_()
    assert torch.equal(placed(model, slots, 0, [ids]), clean)


def exact(q, keys, values, began, kept, window, scale):
    """Attention over sequences, one query after the other, as the kernel for them defines it."""
    out = torch.zeros_like(q)
    for i in range(len(began) - 1):
        first, last = int(began[i]), int(began[i + 1])
        low, high = int(kept[i]), int(kept[i + 1])
        for row in range(first, last):
            sees = high - (last - 1 - row)  # the last query sees the last key
            from_ = low if window[0] < 0 else max(low, sees - 1 - window[0])
            for head in range(q.shape[1]):
                group = head * keys.shape[1] // q.shape[1]
                k, v = keys[from_:sees, group], values[from_:sees, group]
                weights = (k @ q[row, head] * scale).softmax(0)
                out[row, head] = weights @ v
    return out


@pytest.mark.parametrize("newer", [True, False], ids=["window", "causal"])
@pytest.mark.parametrize(("window", "scale"), [(None, None), (8, None), (None, 0.5)])
@pytest.mark.parametrize(("slot", "start", "rows"), [(0, 0, 1), (1, 0, 5), (1, 17, 1), (0, 30, 4)])
def test_what_the_kernel_for_lengths_is_asked_for_is_what_masks_give(
    monkeypatch, newer, window, scale, slot, start, rows
):
    """The kernel itself runs on CUDA alone; there, `has_kernel` compares."""

    def with_windows(
        q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, *, window_size=(-1, -1), enable_gqa=False
    ):
        assert enable_gqa and window_size[1] == 0
        assert int(cu_seq_k[-1] - cu_seq_k[0]) <= max_k and cu_seq_k.dtype == torch.int32
        return exact(q, k, v, cu_seq_q, cu_seq_k, window_size, q.shape[-1] ** -0.5)

    def causal(q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False):
        assert is_causal and int(cu_seq_q[-1]) == max_q
        return exact(q, k, v, cu_seq_q, cu_seq_k, (-1, 0), q.shape[-1] ** -0.5)

    monkeypatch.setattr(varlen, "varlen_attn", with_windows if newer else causal)
    drawn = torch.Generator().manual_seed(start)
    q = torch.randn(rows, 4, 12, generator=drawn, dtype=torch.float64)
    buffer = torch.randn(2, REACH, 4, 12, generator=drawn, dtype=torch.float64)
    at = place(Slots(1, REACH), slot, start)
    if not newer and window:
        with pytest.raises(TypeError):
            by_lengths(q, buffer, at, window, scale)
        return
    found = by_lengths(q, buffer, at, window, scale)
    mask = hidden(at.positions(rows), torch.arange(REACH), window, 2, q.dtype)
    assert torch.allclose(found, masked(q, at.seen(buffer), mask, scale))
