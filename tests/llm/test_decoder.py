"""Forward passes: whatever the split into passes, the logits are transformers' own."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.conftest import KINDS, LEAN, WINDOWED
from voiceloop.llm.model import decoder as passes
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import CHUNK, MANY, LeanDecoder, feed
from voiceloop.llm.model.hf import TransformersDecoder
from voiceloop.llm.rules.draftpolicy import MOST

pytestmark = pytest.mark.models
few = settings(max_examples=15)


def close(a, b):
    """Up to the single precision in which transformers normalises, whatever the weights' type."""
    return a.shape == b.shape and (a - b).abs().max() <= 1e-5 * b.abs().max()


def reference(workshop, kind, ids):
    with torch.no_grad():
        return workshop.model(kind)(torch.tensor([ids])).logits[0]


@pytest.mark.parametrize("kind", KINDS + WINDOWED)
def test_the_llama_family_gets_the_lean_decoder_and_no_other_does(workshop, kind):
    lean = isinstance(workshop.decoder(kind), LeanDecoder)
    assert lean == (kind in LEAN)
    assert lean != isinstance(workshop.decoder(kind), TransformersDecoder)


@pytest.mark.parametrize("kind", KINDS + WINDOWED)
@few
@given(data=st.data())
def test_any_split_into_passes_gives_the_logits_of_one_pass_of_transformers(workshop, kind, data):
    ids = data.draw(st.lists(st.integers(0, workshop.vocab - 1), min_size=1, max_size=40))
    model, cache, rows = workshop.decoder(kind), KvCache(64), []
    while cache.length < len(ids):
        size = data.draw(st.integers(1, 12))
        piece = torch.tensor(ids[cache.length : cache.length + size])
        rows.append(model.forward(piece, cache, len(piece)))
    assert close(torch.cat(rows), reference(workshop, kind, ids))
    assert cache.length == len(ids)


@pytest.mark.parametrize("kind", KINDS + WINDOWED)
@few
@given(data=st.data())
def test_rows_after_a_rollback_replace_those_that_were_there(workshop, kind, data):
    token = st.integers(0, workshop.vocab - 1)
    first, second = data.draw(st.tuples(*[st.lists(token, min_size=2, max_size=12)] * 2))
    keep = data.draw(st.integers(0, len(first) - 1))
    model, cache = workshop.decoder(kind), KvCache(32)
    model.forward(torch.tensor(first), cache, 1)
    cache.rollback(keep)
    logits = model.forward(torch.tensor(second), cache, len(second))
    expected = reference(workshop, kind, first[:keep] + second)[keep:]
    assert close(logits, expected)


@pytest.mark.parametrize("kind", LEAN)
def test_the_lean_decoder_agrees_with_transformers_in_single_precision(workshop, kind):
    model, lean = workshop.single(kind)
    ids = torch.arange(100) * 7 % workshop.vocab
    with torch.no_grad():
        expected = model(ids.unsqueeze(0)).logits[0]
    logits = lean.forward(ids, KvCache(128), 100)
    assert close(logits, expected)
    for rows in (1, 3, 14, 50):
        cache = KvCache(128)
        apart = torch.cat([lean.forward(piece, cache, len(piece)) for piece in ids.split(rows)])
        # What docs/engines.md promises, whatever else is in a pass.
        assert (apart - logits).abs().max() <= 1e-5 * logits.abs().max()


def test_padding_of_the_vocabulary_is_cut_off(workshop):
    model = workshop.model("gpt2")
    cut = TransformersDecoder(model, workshop.vocab - 5, CHUNK)
    logits = cut.forward(torch.tensor([1, 2, 3]), KvCache(8), 2)
    expected = reference(workshop, "gpt2", [1, 2, 3])[1:, : workshop.vocab - 5]
    assert close(logits, expected)


def test_a_long_prompt_is_fed_in_bounded_steps(workshop):
    ids = [i % workshop.vocab for i in range(150)]
    cache, lengths = KvCache(256), []
    steps = feed(workshop.decoder(), cache, ids)
    try:
        while True:
            next(steps)
            lengths.append(cache.length)
    except StopIteration as end:
        logits = end.value
    assert lengths == [64, 128] and cache.length == 150
    assert close(logits[0], reference(workshop, "llama", ids)[-1])


def test_a_pass_over_many_rows_takes_all_cores(workshop, monkeypatch):
    taken = list[str]()

    @contextmanager
    def noted():
        taken.append("all")
        yield

    monkeypatch.setattr(passes, "all_cores", noted)
    model = workshop.decoder("llama")
    assert MOST + 1 < MANY, "what is verified is no large work"
    for rows in (1, MOST + 1, MANY):
        before = len(taken)
        model.forward(torch.arange(rows) % workshop.vocab, KvCache(64), 1)
        assert len(taken) - before == (rows == MANY)
