"""What is proposed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.distributions import CPU, Table
from tests.llm.replies import run
from voiceloop.llm.draft.drafts import ModelDraft, NgramDraft
from voiceloop.llm.rules.sampling import Noise, Penalties, Sampling
from voiceloop.llm.rules.verify import ROOT, DraftTokens, Tree, chain

pytestmark = pytest.mark.models


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.9, top_k=5, frequency_penalty=0.4)])
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
