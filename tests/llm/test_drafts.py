"""What is proposed, and from which distribution."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.distributions import CPU, Table
from voiceloop.llm.draft.drafts import ModelDraft, NgramDraft
from voiceloop.llm.draft.featuredraft import FeatureDraft
from voiceloop.llm.draft.translated import TranslatedDraft
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.rules.draftpolicy import DraftPolicy
from voiceloop.llm.rules.sampling import Noise, Penalties, Sampling, choose, warp
from voiceloop.llm.rules.verify import ROOT, DraftTokens, Tree, chain

pytestmark = pytest.mark.pure
T = TypeVar("T")


def run(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


# ---- a model's

SAMPLED = Sampling(0.9, top_k=5, repetition_penalty=1.4, frequency_penalty=0.4)


class Counting(Table):
    """Counts the passes of a model."""

    passes = 0

    def forward(self, ids: torch.Tensor, cache: KvCache, keep: int) -> torch.Tensor:
        self.passes += 1
        return super().forward(ids, cache, keep)


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED])
@pytest.mark.parametrize("seen", [0, 5, 9, 10])
def test_each_token_is_drawn_from_the_distribution_that_is_handed_in(
    sampling: Sampling, seen: int
) -> None:
    model, ids, count = Table(8, 3), [3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 0], 4
    penalties, source = Penalties(sampling, 8, CPU), Noise(0, 8, CPU)
    noise = source.gumbel(source.keys(0, 0, count + 1))
    draft = ModelDraft(model, sampling, 32)
    run(draft.prefill(ids[:seen]))
    penalties.count(ids, 6)
    given_noise = noise if sampling.temperature else None
    x = run(draft.propose(ids, chain(count), given_noise, penalties))
    assert len(x) == count
    known = list(ids)
    for index, token in enumerate(x.tokens.tolist()):
        penalties.count(known, 6)
        logits = model.forward(torch.tensor(known), KvCache(32), 1)
        scores = warp(penalties.apply(logits, torch.empty(0, dtype=torch.long)), sampling)
        row = None if given_noise is None else noise[index]
        assert choose(scores, row).item() == token
        known.append(token)
    assert draft.length == len(ids) + count - 1  # the last has not been seen


def test_a_step_of_a_models_drafting_is_at_most_one_pass() -> None:
    model, ids = Counting(8, 3), [i % 8 for i in range(200)]
    draft, penalties = ModelDraft(model, Sampling(), 256), Penalties(Sampling(), 8, CPU)
    for _ in draft.propose(ids, chain(4), None, penalties):
        assert model.passes <= 1
        model.passes = 0
    assert model.passes == 1


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED])
def test_nothing_is_drafted_after_the_end_of_a_reply(sampling: Sampling) -> None:
    ids, count = [3, 1, 4], 6
    source, penalties = Noise(0, 8, CPU), Penalties(sampling, 8, CPU)
    noise = source.gumbel(source.keys(0, 0, count + 1))

    def drafted(ends: set[int]) -> DraftTokens:
        draft = ModelDraft(Table(8, 3), sampling, 32, frozenset(ends))
        penalties.count(ids, 2)
        given_noise = noise if sampling.temperature else None
        return run(draft.propose(ids, chain(count), given_noise, penalties))

    free = drafted(set())
    for place, end in enumerate(free.tokens.tolist()):
        first = free.tokens.tolist().index(end)
        ended = drafted({end})
        assert ended.tokens.tolist() == free.tokens.tolist()[: first + 1], place


# ---- what was said before


def looked_up(ids: list[int], count: int) -> list[int]:
    """By a plain search: the longest n-gram, where it was said last, and what followed."""
    for size in range(NgramDraft.LONGEST, NgramDraft.SHORTEST - 1, -1):
        gram = ids[-size:]
        for end in range(len(ids) - 1, size - 1, -1):
            if len(gram) == size and ids[end - size : end] == gram:
                copied = list(ids)
                for index in range(count):
                    copied.append(copied[end + index])
                return copied[len(ids) :]
    return []


def proposed(draft: NgramDraft, ids: list[int], count: int) -> list[int]:
    x = run(draft.propose(ids, chain(count), None, Penalties(Sampling(), 4, CPU)))
    return x.tokens.tolist()


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(1, 4), st.integers(1, 4))
def test_paths_of_a_look_up_begin_with_all_that_followed_before(
    ids: list[int], wide: int, deep: int
) -> None:
    """Those tokens first that followed more of the last ones, and these that did so last."""
    firsts = dict[int, int]()
    for size in range(NgramDraft.LONGEST, NgramDraft.SHORTEST - 1, -1):
        for end in range(len(ids) - 1, size - 1, -1):
            if len(ids) >= size and ids[end - size : end] == ids[-size:]:
                firsts.setdefault(ids[end], end)
    starts = list(firsts.values())[:wide]
    parents = (ROOT,) * wide + tuple(range(wide * (deep - 1)))
    x = run(NgramDraft(CPU).propose(ids, Tree(parents), None, Penalties(Sampling(), 4, CPU)))
    paths = [[x.tokens[at] for at in path] for path in x.tree.paths if len(path) == deep]
    expected = [[ids[s + i % (len(ids) - s)] for i in range(deep)] for s in starts]
    assert len(x) == len(starts) * deep
    assert sorted(paths) == sorted(expected)
    assert [int(x.tokens[node]) for node in x.tree.children(ROOT)] == [e[0] for e in expected]


changes = st.lists(
    st.tuples(st.integers(0, 25), st.lists(st.integers(0, 2), max_size=12), st.integers(1, 6)),
    max_size=8,
)


@settings(max_examples=60)
@given(changes)
def test_a_look_up_is_a_plain_search_whatever_was_said_and_taken_back(
    edits: list[tuple[int, list[int], int]],
) -> None:
    draft, ids = NgramDraft(CPU), list[int]()
    for cut, more, count in edits:
        draft.rollback(cut)
        del ids[cut:]
        ids += more
        assert proposed(draft, ids, count) == looked_up(ids, count)
        assert draft.length == len(ids)
        fresh = NgramDraft(CPU)
        run(fresh.prefill(ids))
        assert fresh._ends == draft._ends


def test_what_repeats_itself_goes_on_repeating() -> None:
    assert proposed(NgramDraft(CPU), [7, 1, 2, 3, 1, 2, 3, 1, 2], 7) == [3, 1, 2, 3, 1, 2, 3]


def test_a_look_up_reads_only_what_is_new() -> None:
    class Watched(list[int]):
        read = 0

        def __getitem__(self, part):  # type: ignore[override]
            taken = super().__getitem__(part)
            self.read += len(taken) if isinstance(part, slice) else 1
            return taken

    ids = Watched(i * i % 50 for i in range(5000))
    draft = NgramDraft(CPU)
    run(draft.prefill(ids))
    ids.read = 0
    ids.append(3)
    proposed(draft, ids, 4)
    assert ids.read == 1


@pytest.mark.parametrize("kind", [ModelDraft, FeatureDraft, TranslatedDraft])
def test_a_draft_that_is_tried_again_reads_in_no_step_what_it_has_missed(kind) -> None:
    assert kind.lag < DraftPolicy.PROBE
