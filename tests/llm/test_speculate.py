"""Whatever is carried over, cancelled, cut or changed on the way, replies and caches stay right,
and what is counted is what happened."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.replies import (
    CAPACITY,
    GREEDY,
    MODE_NAMES,
    MODES,
    PENALISED,
    SAMPLED,
    Reply,
    captured,
    prompts,
    run,
    say,
    speculator,
)
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.draft.drafts import ModelDraft
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import CHUNK
from voiceloop.llm.model.timing import Stopwatch
from voiceloop.llm.replies import LAST_SENTENCE
from voiceloop.llm.rules.draftpolicy import MOST, DraftPolicy
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models

# ---- carrying a reply over to another prompt

PROMPT, OTHER, THIRD = [0, 3, 2], [4, 1, 3, 2], [5, 5, 2]


def caches_are_right(made: Speculator, ids: Sequence[int], models: Sequence[Any]) -> None:
    """Both caches hold what a fresh prefill of a beginning of `ids` would."""
    draft = made._draft
    caches = [made.cache, *([draft.cache] if isinstance(draft, ModelDraft) else [])]
    for cache, model in zip(caches, models, strict=False):
        assert cache.length <= len(ids)
        if cache.length == 0:
            continue
        fresh = KvCache(CAPACITY)
        model.forward(torch.tensor(ids[: cache.length]), fresh, 1)
        for layer, both in cache._layers.items():
            for live, anew in zip(both, fresh._layers[layer], strict=True):
                rows = slice(0, cache.length)
                assert torch.allclose(live[rows], anew[rows], atol=1e-8)


@pytest.mark.parametrize("sampling", MODES, ids=MODE_NAMES)
def test_a_reply_that_is_carried_over_is_the_one_that_a_fresh_start_gives(workshop, sampling):
    target, rng, n = workshop.decoder(), random.Random(1), 2 * CHUNK + 20
    models = (target, workshop.decoder(seed=1))
    first, second = ([rng.randrange(workshop.vocab) for _ in range(length)] for length in (90, 70))
    expected = say(speculator(target, None, sampling, None), second, n).ids
    former = say(speculator(target, None, sampling, None), first, 40).ids
    olds: list[list[int]] = [[], former, expected[:1], expected[:30], expected[: CHUNK + 9]]
    olds += [
        [*expected[:wrong], (expected[wrong] + 1) % workshop.vocab, *former]
        for wrong in (0, 5, CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 7)
    ]
    for old in olds:
        made = speculator(target, models[1], sampling, 4)
        say(made, first, 20)
        made.rollback(0)
        step = run(made.revise(Prompt(second, 1), old))
        agreed = next(i for i in range(len(old) + 1) if old[: i + 1] != expected[: i + 1])
        assert list(step.tokens) == expected[: agreed + 1]
        assert (step.drafted, step.accepted) == (len(old), agreed)
        caches_are_right(made, [*second, *step.tokens], models)
        assert made.stats.total.carried == agreed
        made.rollback(0)
        assert say(made, second, n, old=old).ids == expected


def test_a_reply_is_verified_in_one_pass_with_the_rest_of_the_prompt(workshop):
    (prompt, _) = prompts(workshop.vocab, 2)
    target = Watched(workshop.decoder())
    expected = say(speculator(target, None, GREEDY, None), prompt, 30).ids
    made = speculator(target, None, GREEDY, None)
    run(made.prefill(prompt[:-3]))
    target.rows.clear()
    run(made.revise(Prompt(prompt, 1), expected))
    assert target.rows == [3 + 30]
    made.rollback(0)
    target.rows.clear()
    wrong = [*expected[:4], (expected[4] + 1) % workshop.vocab, *range(3 * CHUNK)]
    run(made.revise(Prompt(prompt, 1), wrong))
    assert target.rows == [CHUNK]  # later chunks cannot matter


@pytest.mark.parametrize("read", [0, 20], ids=["unread", "read"])
@pytest.mark.parametrize("watched", [15, 20, 21, 24, 25])
def test_logits_can_be_watched_anywhere_in_what_a_pass_reads(workshop, watched, read):
    target, prompt = workshop.decoder(), list(range(25))
    expected = say(speculator(target, None, GREEDY, None), prompt, 4).ids
    made = speculator(target, None, GREEDY, None, ends=[3, 4, 5])
    run(made.prefill(prompt[:read]))
    assert run(made.revise(Prompt(prompt, 1, watched=watched), expected)).accepted == 4
    found = made.ending(watched)
    logits = target.forward(torch.tensor(prompt[:watched]), KvCache(CAPACITY), 1)[0]
    if watched <= read - 1:
        assert found is None  # no pass gave them
    else:
        assert found == pytest.approx(float(logits.softmax(-1)[3:6].sum()), rel=1e-5)


@pytest.mark.parametrize("sampling", MODES, ids=MODE_NAMES)
def test_a_reply_calls_a_tool_if_that_is_likelier_than_words(workshop, sampling):
    target, other, kinds = workshop.decoder(), workshop.decoder(seed=1), set[bool]()
    rng = random.Random(3)
    for prompt in prompts(workshop.vocab, 8):
        logits = target.forward(torch.tensor(prompt), KvCache(CAPACITY), 1)[0]
        begins = frozenset(rng.sample(range(workshop.vocab), workshop.vocab // 2))
        calling = float(logits.softmax(-1)[[*begins]].sum()) >= 0.5
        kinds.add(calling)
        whole = Prompt(prompt, 1, watched=len(prompt), calls=begins)
        made = speculator(target, None, sampling, None, ends=[3, 4])
        first = run(made.revise(whole, [])).tokens[0]
        assert (first in begins) == calling
        ending = float(logits.softmax(-1)[3:5].sum())
        assert made.ending(len(prompt)) == pytest.approx(ending, rel=1e-5)
        for old in ([], [first], [(first + 1) % workshop.vocab], [first, 0, 1, 2]):
            made = speculator(target, other, sampling, 4)
            assert run(made.revise(whole, old)).tokens[0] == first
        (only,) = run(speculator(target, None, sampling, None).read(whole))
        kept = {*(only > -torch.inf).nonzero().flatten().tolist()}
        assert kept == (begins if calling else {*range(workshop.vocab)} - begins)
    assert kinds == {True, False}


# ---- cancellation


class Watched:
    """Notes how many rows each pass of a model has."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.vocab, self.parameters, self.device = inner.vocab, inner.parameters, inner.device
        self.pass_bytes, self.chunk = 0, CHUNK
        self.rows: list[int] = []

    def forward(self, ids, cache, keep):
        self.rows.append(len(ids))
        return self.inner.forward(ids, cache, keep)


@pytest.mark.parametrize("name", ["unsteady", "ngram"])
@pytest.mark.parametrize("sampling", [GREEDY, PENALISED], ids=["greedy", "sampled"])
def test_cancelled_at_any_pause_it_goes_on_as_if_nothing_had_been(workshop, sampling, name):
    target = workshop.decoder()
    draft = name if name == "ngram" else workshop.draft(name)
    inner = getattr(draft, "inner", None)
    prompt = [i % 50 for i in range(CHUNK + 30)]
    expected = say(speculator(target, draft, sampling, 3), prompt, 12)
    pauses = sum(1 for _ in Reply(speculator(target, draft, sampling, 3), prompt).steps(12))
    assert pauses > 10
    for pause in range(1, pauses + 1):
        made = speculator(target, draft, sampling, 3)
        reply = Reply(made, prompt)
        steps = reply.steps(12)
        for _ in itertools.islice(steps, pause):
            pass
        steps.close()
        known = [*prompt, *reply.ids]
        caches_are_right(made, known, (target, inner))
        if made._draft is not None:
            assert made._draft.length <= len(known)
        for _ in reply.steps(12):
            pass
        assert reply.ids == expected.ids
        caches_are_right(made, [*prompt, *reply.ids], (target, inner))


@pytest.mark.parametrize("sampling", [GREEDY, PENALISED], ids=["greedy", "sampled"])
def test_carrying_over_can_be_cancelled_between_any_two_passes(workshop, sampling):
    target, prompt = workshop.decoder(), [i % 50 for i in range(CHUNK + 30)]
    expected = say(speculator(target, None, sampling, None), prompt, 3 * CHUNK).ids
    for pause in itertools.count(1):
        made = speculator(target, None, sampling, None)
        steps = made.revise(Prompt(prompt, 1), expected)
        paused = sum(1 for _ in itertools.islice(steps, pause))
        if paused < pause:
            break
        steps.close()
        caches_are_right(made, prompt, (target,))
        assert say(made, prompt, len(expected)).ids == expected
    assert pause > 3  # between passes over the old reply, too


@pytest.mark.parametrize("sampling", [GREEDY, PENALISED], ids=["greedy", "sampled"])
def test_a_step_is_at_most_one_pass_of_one_model(workshop, sampling):
    models = Watched(workshop.decoder()), Watched(workshop.draft("unsteady"))
    made = speculator(*models, sampling, 4)
    prompt = [i % 50 for i in range(3 * CHUNK + 5)]
    old = list(range(2 * CHUNK))
    for reply in (Reply(made, prompt), Reply(made, prompt[1:])):
        made.rollback(0)
        for _ in reply.steps(20, old):
            assert sum(len(model.rows) for model in models) <= 1
            for model in models:
                assert all(rows <= CHUNK for rows in model.rows)
                model.rows.clear()
        for model in models:
            model.rows.clear()
        old = reply.ids


@settings(max_examples=25)
@given(
    seed=st.integers(0, 9),
    cuts=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), min_size=1, max_size=6),
    sampling=st.sampled_from([GREEDY, PENALISED]),
    length=st.sampled_from([None, 1, 5]),
)
def test_after_any_cut_both_caches_hold_what_a_fresh_prefill_would(
    workshop, seed, cuts, sampling, length
):
    models = workshop.decoder(), workshop.decoder(seed=1)
    made, rng = speculator(*models, sampling, length), random.Random(seed)
    ids = [rng.randrange(workshop.vocab) for _ in range(20)]
    for turn, (cut, steps) in enumerate(cuts):
        made.rollback(cut)
        del ids[cut:]
        ids += [rng.randrange(workshop.vocab) for _ in range(rng.randrange(1, 70))]
        reply = Reply(made, tuple(ids), turn)
        old = [rng.randrange(workshop.vocab) for _ in range(rng.randrange(3))]
        for _ in itertools.islice(reply.steps(16, old), steps):
            pass
        ids += reply.ids
        caches_are_right(made, ids, models)
        assert len(made.stats._row_ms) == made.cache.length


# ---- what is counted


def test_counters_tell_a_good_draft_from_a_bad_one(workshop):
    (prompt,) = prompts(workshop.vocab, 1)

    def counters(name, sampling):
        made = speculator(workshop.decoder(), workshop.draft(name), sampling, 4)
        say(made, prompt, 41)
        return made.stats.counters

    for sampling in (GREEDY, SAMPLED):
        same = counters("same", sampling)
        assert same.drafted == same.tested == same.accepted == 32
        assert same.target_passes == 1 + 8  # the first token, then five a round
        assert same.wasted == 0 and same.prefilled == len(prompt)
        unsteady = counters("unsteady", sampling)
        assert 0 < unsteady.accepted < unsteady.tested <= unsteady.drafted
        assert unsteady.wasted == unsteady.drafted - unsteady.accepted
        positions = unsteady.accepted_by_position
        assert sum(positions) == unsteady.accepted
        assert list(positions) == sorted(positions, reverse=True)
    wrong = counters("wrong", GREEDY)
    assert wrong.accepted == 0 and wrong.tested == wrong.target_passes - 2  # no draft for the last
    assert wrong.target_passes == 41 and wrong.wasted == wrong.drafted
    none = counters("none", GREEDY)
    assert none.drafted == 0 and none.target_passes == 41


class Timed(Watched):
    """A model whose passes take what they are said to, on a clock of their own."""

    def __init__(self, inner: Any, clock: list[float], ms: Callable[[int], float]) -> None:
        super().__init__(inner)
        self.clock, self.ms = clock, ms

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def forward(self, ids, cache, keep):
        self.clock[0] += self.ms(len(ids)) / 1000
        return super().forward(ids, cache, keep)

    def forward_at(self, ids, place, keep):
        self.clock[0] += self.ms(len(ids)) / 1000
        return self.inner.forward_at(ids, place, keep)


def test_time_is_counted_where_it_went(workshop):
    clock = [0.0]
    target = Timed(workshop.decoder(), clock, lambda rows: 10 + rows)
    draft = Timed(workshop.draft("wrong"), clock, lambda rows: 2.0)
    made = speculator(
        target, draft, GREEDY, 3, stopwatch=lambda device: Stopwatch(device, lambda: clock[0])
    )
    prompt = list(range(20))
    steps = made.revise(Prompt(prompt, 1), [])
    first = run(steps).tokens
    assert made.stats.counters.target_ms == pytest.approx(30)
    run(made.prefill_draft(prompt))
    assert made.stats.counters.draft_ms == pytest.approx(2)
    paused = made.round([*prompt, *first], 9)
    for _ in paused:
        clock[0] += 5  # somebody else's step
    counters = made.stats.counters
    assert counters.draft_ms == pytest.approx(2 + 3 * 2)
    assert counters.target_ms == pytest.approx(30 + 14)
    assert counters.wasted_ms == pytest.approx(3 * 2)  # none was accepted; the pass was not in vain
    made.rollback(10)
    assert made.stats.counters.wasted_ms == pytest.approx(6 + 14 + 30 / 2)
    assert made.stats.counters.wasted == 3 + 11
    cancelled = made.round([*range(10), 4], 9)
    next(cancelled)
    before = made.stats.counters.wasted_ms
    cancelled.close()
    assert made.stats.counters.wasted_ms - before == pytest.approx(made.stats.counters.draft_ms - 8)


def test_the_number_of_draft_tokens_follows_from_the_times_alone(workshop):
    def schedule(step_ms, name="unsteady"):
        clock = [0.0]
        target = Timed(workshop.decoder(), clock, lambda rows: 10.0)
        draft = Timed(workshop.draft(name), clock, lambda rows: step_ms)
        made = speculator(
            target,
            draft,
            PENALISED,
            None,
            stopwatch=lambda device: Stopwatch(device, lambda: clock[0]),
        )
        return [step.drafted for step in say(made, list(range(9)), 100).rounds]

    assert schedule(1.0) == schedule(1.0)
    good = schedule(1.0, "same")
    assert good[0] < DraftPolicy.FIRST_CLAUSE and max(good) == MOST
    assert sum(schedule(60.0)) < 0.2 * sum(schedule(1.0))


@pytest.mark.parametrize("captures", [False, True], ids=["plain", "captured"])
def test_a_draft_that_was_slow_for_a_while_is_taken_up_again(workshop, captures):
    """When it is tried then, it has all to read that was said without it; that is no part of what a
    step takes, or it would look too slow ever after."""
    clock, slow = [0.0], [True]
    target = Timed(workshop.decoder(), clock, lambda rows: 10.0)
    draft = Timed(workshop.draft("same"), clock, lambda rows: 30.0 if slow[0] else 2.0 * rows)
    made = speculator(
        target,
        draft,
        GREEDY,
        None,
        stopwatch=lambda device: Stopwatch(device, lambda: clock[0]),
        **({"captured": captured(target, draft, GREEDY)} if captures else {}),
    )
    first = say(made, list(range(9)), 60)
    assert not first.rounds[-1].drafted
    slow[0] = False
    rounds = say(made, [*range(9), *first.ids], 400, turn=2).rounds
    assert sum(step.drafted for step in rounds[-4:]) > 8
    counters = made.stats.counters
    behind = [step for step in rounds if step.drafted == 1]
    assert behind and all(step.draft_ms < 5 for step in behind)
    assert counters.draft_prefilled > 10


# ---- in a conversation

TEXTS = ["What is the capital of France?", "Tell me a story.", "I", "Wie spät ist es? 🌍"]


def bursts(conversation, text, turn=1):
    return [item for item in conversation.reply(text, turn) if isinstance(item, TokenBurst)]


@settings(max_examples=40)
@given(
    text=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=30),
    draft=st.sampled_from(["same", "random", "wrong", "unsteady"]),
    length=st.sampled_from([None, 1, 3, 5, 8]),
    limit=st.integers(1, 20),
    end=st.integers(0, 19),
    sampling=st.sampled_from([GREEDY, PENALISED]),
)
def test_a_reply_ends_before_its_end_token_and_at_its_limit_even_within_a_burst(
    workshop, text, draft, length, limit, end, sampling
):
    target = workshop.decoder()
    plain = workshop.conversation(target, None, sampling, eos=frozenset(), max_new_tokens=20)
    bursts(plain, text)
    whole = list(plain.ids[plain._history.reply.start :])
    stop = whole[min(end, len(whole) - 1)]  # it may have ended with a sentence
    ended = {"eos": frozenset([stop]), "max_new_tokens": limit}
    conversation = workshop.conversation(
        target, workshop.draft(draft), sampling, length=length, **ended
    )
    said = bursts(conversation, text)
    found = list(conversation.ids[conversation._history.reply.start :])
    most = whole[: min(whole.index(stop), limit)]
    assert found == most[: len(found)]
    # One that nears its limit may end with a sentence, as it does without a draft.
    assert len(found) in {len(most), *range(round(limit * LAST_SENTENCE), limit)}
    alone = workshop.conversation(target, None, sampling, **ended)
    bursts(alone, text)
    assert found == list(alone.ids[alone._history.reply.start :])
    assert all(stop not in burst.ids for burst in said)


def test_the_first_token_leaves_before_the_draft_is_asked(workshop):
    draft = Watched(workshop.decoder(seed=1))
    conversation = workshop.conversation(workshop.decoder(), draft, eos=frozenset(), length=2)
    steps = conversation.reply("Hello there", 1)  # which may be given back
    first = next(step for step in steps if step is not None)
    assert len(first.ids) == 1 and not draft.rows
    next(steps)
    next(steps)
    assert draft.rows


def test_bursts_say_what_was_drafted_and_what_of_it_was_accepted(workshop):
    conversation = workshop.conversation(
        workshop.decoder(), workshop.draft("same"), length=3, eos=frozenset(), max_new_tokens=9
    )
    said = bursts(conversation, TEXTS[1])
    assert [(len(b.ids), b.drafted, b.accepted) for b in said] == [(1, 0, 0), (4, 3, 3), (4, 3, 3)]
