"""The search for what most likely follows gives what enumerating everything gives."""

from __future__ import annotations

import itertools

import pytest
import torch
from voiceloop_parallel.ahead import AT_ONCE, WIDTH, most_likely

from voiceloop.llm.rules.verify import ROOT

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


def searched(after, count=10_000, rows=10_000):
    """What the search finds, and after which beginnings it was told what follows, pass by pass."""
    nodes, asked = [], []

    def extend(follows, tokens):
        assert len(follows) == len(tokens) <= AT_ONCE
        new = [
            (*(() if node == ROOT else nodes[node]), token)
            for node, token in zip(follows, tokens, strict=True)
        ]
        nodes.extend(new)
        asked.append(new)
        return torch.stack([after(ids) for ids in new])

    steps = most_likely(after(()), extend, END, count=count, rows=rows)
    pauses = 0
    while True:
        try:
            next(steps)
            pauses += 1
        except StopIteration as end:
            assert pauses == len(asked)
            paths = {ROOT: (), **dict(enumerate(nodes))}
            assert all(one.tokens == paths[one.node] for one in end.value)
            return [one.tokens for one in end.value], asked


def begins(ids, found):
    """Whether `ids` are the beginning of one of those that were found, or one."""
    return any(one[: len(ids)] == ids for one in found)


@pytest.mark.parametrize("seed", range(4))
def test_continuations_come_in_the_order_of_their_probability(seed):
    """But for those that are the beginning of a likelier one."""
    found, _ = searched(logits(seed), count=40)
    assert not any(begins(ids, found[:at]) for at, ids in enumerate(found))
    short = [ids for ids in found if len(ids) <= 3]
    assert len(short) > 5
    likely = enumerated(logits(seed), 3)
    likely = likely[: likely.index(short[-1]) + 1]
    before = {ids: found[: found.index(ids)] for ids in short}
    assert short == [ids for ids in likely if ids in before]
    for at, ids in enumerate(likely):
        if ids not in before:
            later = next(one for one in likely[at:] if one in before)
            assert begins(ids, before[later])


@pytest.mark.parametrize("rows", [0, 1, 70, 150])
def test_no_more_rows_are_computed_than_allowed_and_what_is_whole_by_then_still_comes(rows):
    found, asked = searched(logits(1), rows=rows)
    known = {(), *(ids for one in asked for ids in one)}
    assert sum(map(len, asked)) == rows
    assert set(found) <= known  # after each of them the end is known, too
    assert all(begins(ids, found) for ids in known)
    assert len(known) == 1 + sum(map(len, asked))


def test_the_likeliest_are_found_without_looking_at_much():
    _, asked = searched(logits(2), count=3)
    assert sum(map(len, asked)) < 80
