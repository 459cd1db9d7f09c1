"""The search for what most likely follows gives what enumerating everything gives."""

from __future__ import annotations

import itertools

import pytest
import torch

from voiceloop.llm.likely import WIDTH, most_likely

pytestmark = pytest.mark.models

VOCAB, END = WIDTH, 0


def logits(seed):
    """Logits after any beginning, drawn by what it is."""

    def after(ids):
        place = sum(token * VOCAB**at for at, token in enumerate(ids, 1))
        generator = torch.Generator().manual_seed(seed * 100_003 + place)
        return 2 * torch.randn(VOCAB, generator=generator, dtype=torch.float64)

    return after


def enumerated(after, longest):
    """All whole continuations of up to so many tokens, likeliest first."""
    found = []
    for length in range(longest + 1):
        for words in itertools.product(range(1, VOCAB), repeat=length):
            ids = (*words, END)
            scores = [after(ids[:at]).log_softmax(-1)[ids[at]].item() for at in range(len(ids))]
            found.append((sum(scores), words))
    return [words for _, words in sorted(found, reverse=True)]


@pytest.mark.parametrize("seed", range(4))
def test_continuations_come_in_the_order_of_their_probability(seed):
    found = [ids for ids in most_likely(logits(seed), END, 10_000, 3) if ids is not None]
    assert found == enumerated(logits(seed), 3)


@pytest.mark.parametrize("passes", [0, 1, 7, 30])
def test_no_more_passes_are_made_than_allowed_and_what_is_whole_by_then_still_comes(passes):
    asked = []

    def after(ids):
        asked.append(ids)
        return logits(1)(ids)

    found = list(most_likely(after, END, passes, 8))
    whole = [ids for ids in found if ids is not None]
    assert len(asked) == found.count(None) == passes
    assert bool(whole) == bool(passes)
    assert all(ids in asked for ids in whole)  # each is a beginning that was extended, and the end
    assert len(set(asked)) == len(asked)
