"""What is begun ahead changes nothing that is said, and is taken over where it was foreseen."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from voiceloop_parallel import hooks
from voiceloop_parallel.ahead import ALIKE, TOKENS, TURN_ROWS

from tests.llm.test_conversation import exhaust, spoken
from voiceloop.llm.decode.hook import MakeHook
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import CHUNK
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.settings.config import LlmConfig

pytestmark = pytest.mark.models

SAMPLINGS = [Sampling(), Sampling(0.9, seed=3), Sampling(0.7, seed=5, repetition_penalty=1.3)]
ASKED = ("What is the capital?", "Tell me a story.", "And then?", "Thank you.")


def begins(count: int) -> MakeHook:
    """What lets a conversation begin that many replies ahead."""
    return hooks(LlmConfig(branches=count))


class Foretold:
    """A model that knows what users say, the likeliest first, and what is to be replied to each.

    Its keys are the tokens themselves, so that it says what follows from what the cache holds.
    """

    def __init__(self, workshop, replies):
        self.vocab, self.parameters, self.device = workshop.vocab, 1, torch.device("cpu")
        template, eos = workshop.template, workshop.tokenizer.eos_token_id
        self.rows = 0
        self.pass_bytes, self.chunk = 0, CHUNK
        self._user = template.opening("")
        self._turns = [
            [*template.content(text), *template.user_to_reply, *template.encode(reply), eos]
            for text, reply in replies.items()
        ]

    def forward(self, ids, cache, keep):
        prefix = cache.extend(0, ids.view(-1, 1, 1))[0].flatten().tolist()
        cache.advance(len(ids))
        self.rows += len(ids)
        ends = range(len(prefix) - keep + 1, len(prefix) + 1)
        return torch.stack([self._next(prefix[:end]) for end in ends])

    def forward_tree(self, ids, cache, tree, keep):
        rows = cache.extend(0, ids.view(-1, 1, 1))[0].flatten().tolist()
        cache.advance(len(ids))
        self.rows += len(ids)
        root = len(rows) - len(tree)
        paths = tree.paths[len(tree) - keep :]
        return torch.stack(
            [self._next(rows[:root] + [rows[root + node] for node in path]) for path in paths]
        )

    def _next(self, prefix):
        n = len(self._user)
        marks = (at + n for at in range(len(prefix)) if prefix[at : at + n] == self._user)
        begun = max(marks, default=len(prefix))
        logits = torch.zeros(self.vocab, dtype=torch.float64)
        for rank, turn in reversed([*enumerate(self._turns)]):
            if turn[: len(prefix) - begun] == prefix[begun:] and len(prefix) - begun < len(turn):
                logits[turn[len(prefix) - begun]] = 30.0 - rank
        return logits


REPLIES = {
    "Tell me a story.": "Once upon a time.",
    "What is it?": "It is the sea.",
    "What time is it?": "It is a quarter past nine.",
    "Is it nine?": "Thank you.",
}


def said(conversation, text, turn):
    return exhaust(conversation.reply(text, turn))


def ids(items):
    return [token for item in items for token in item.ids]


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "sampled", "penalised"])
@pytest.mark.parametrize("draft", ["none", "unsteady"])
def test_whatever_is_begun_ahead_replies_are_those_that_come_without(workshop, sampling, draft):
    models = workshop.decoder(), workshop.draft(draft)
    plain = workshop.conversation(*models, sampling)
    ahead = workshop.conversation(*models, sampling, hook=begins(3))
    for turn, text in enumerate(ASKED, 1):
        for part in ("", text[:4]):
            for _ in itertools.islice(ahead.ahead(part, turn), 60):
                pass
            exhaust(ahead.prefill(part, turn))
        assert ids(said(ahead, text, turn)) == ids(said(plain, text, turn))
        assert ahead.ids == plain.ids
    assert ahead.hook.counters.tokens > 0


def passes(conversation, text, turn):
    """The reply, and how many passes of the target gave its tokens."""
    before = conversation.counters.target_passes
    found = said(conversation, text, turn)
    return spoken(found), conversation.counters.target_passes - before


@pytest.mark.parametrize("part", ["", "What", "Tell me"])
def test_a_reply_that_was_foreseen_takes_two_passes_or_three(workshop, part):
    conversation = workshop.conversation(Foretold(workshop, REPLIES), hook=begins(4))
    said(conversation, "Is it nine?", 1)
    exhaust(conversation.prefill(part, 2) if part else ())
    exhaust(conversation.ahead(part, 2))
    foreseen = [text for text in REPLIES if text.startswith(part)]
    begun = conversation.hook.counters.tokens
    for text in foreseen:
        counted, own = conversation.counters, replace(conversation.hook.counters)
        found = said(conversation, text, 2)
        assert spoken(found) == REPLIES[text]
        after = conversation.counters
        assert conversation.hook.counters.hits - own.hits == 1
        accepted = conversation.hook.counters.accepted - own.accepted
        assert sum(item.facts.get("foreseen", 0) for item in found) == accepted
        assert accepted > 2
        assert after.target_passes - counted.target_passes <= 3  # two begin alike
    assert conversation.hook.counters.tokens == begun


def test_no_more_is_begun_than_was_asked_for(workshop):
    for most in (1, 2, 3):
        conversation = workshop.conversation(Foretold(workshop, REPLIES), hook=begins(most))
        exhaust(conversation.ahead("", 1))
        told_apart = (len(REPLIES) - most) * ALIKE
        assert conversation.hook.counters.tokens <= most * TOKENS + told_apart
        hits = [passes(conversation, text, 1)[1] <= 3 for text in REPLIES]
        assert sum(hits) == most


def test_words_that_nobody_foresaw_are_answered_by_what_was_begun_to_others(workshop):
    told = {"Tell me a story.": "Once upon a time.", "A story, please.": "Once upon a time."}
    conversation = workshop.conversation(Foretold(workshop, told), hook=begins(1))
    exhaust(conversation.ahead("Tell", 1))
    assert passes(conversation, "A story, please.", 1) == ("Once upon a time.", 2)
    plain = workshop.conversation(Foretold(workshop, told))
    assert passes(plain, "A story, please.", 1)[1] > 2


def test_one_reply_to_several_texts_is_one_branch(workshop):
    same = {text: "Once upon a time." for text in ("Tell me.", "Tell me a story.")}
    conversation = workshop.conversation(
        Foretold(workshop, same | {"What is it?": "It is the sea."}), hook=begins(2)
    )
    exhaust(conversation.ahead("", 1))
    for text in ("Tell me a story.", "What is it?"):
        assert passes(conversation, text, 1)[1] == 2


def test_what_was_begun_for_one_turn_is_not_offered_in_another(workshop):
    conversation = workshop.conversation(Foretold(workshop, REPLIES), hook=begins(4))
    exhaust(conversation.ahead("", 1))
    said(conversation, "Is it nine?", 1)
    before = conversation.hook.counters.hits
    said(conversation, "What time is it?", 2)
    assert conversation.hook.counters.hits == before


@pytest.mark.parametrize("steps", [0, 1, 5, 20])
def test_whatever_else_is_asked_for_ends_it_within_a_step(workshop, steps):
    model = Foretold(workshop, REPLIES)
    conversation = workshop.conversation(model, hook=begins(4))
    looking = conversation.ahead("", 1)
    for _ in itertools.islice(looking, steps):
        pass
    exhaust(conversation.prefill("What", 1))
    rows = model.rows
    assert len(exhaust(looking)) <= 1
    assert model.rows <= rows + 16


@pytest.mark.parametrize("steps", range(1, 24, 3))
def test_a_search_that_was_superseded_disturbs_no_other(workshop, steps):
    conversation = workshop.conversation(Foretold(workshop, REPLIES), hook=begins(4))
    old = conversation.ahead("", 1)
    for _ in itertools.islice(old, steps):
        pass
    conversation.hook._left = TURN_ROWS  # as in a turn that has just begun
    new = conversation.ahead("What", 1)
    for _ in itertools.islice(new, 5):
        pass
    assert exhaust(old) == []
    old.close()
    exhaust(new)
    assert passes(conversation, "What is it?", 1)[1] == 2
    assert conversation.hook._cache.nbytes == 0


def test_what_is_shared_is_copied_and_not_computed_again(workshop):
    model = Foretold(workshop, REPLIES)
    conversation = workshop.conversation(model, hook=begins(1))
    for turn in range(1, 6):
        said(conversation, "Tell me a story.", turn)
    rows, known = model.rows, len(conversation.ids)
    exhaust(conversation.ahead("", 6))
    assert known > 100
    longest = max(map(len, map(workshop.template.encode, REPLIES))) + TOKENS
    assert model.rows - rows <= longest**2
    assert conversation.hook._cache.nbytes == 0  # and nothing of it is kept


def test_nothing_is_begun_where_there_is_no_room_or_nobody_wants_it(workshop):
    model = Foretold(workshop, REPLIES)
    narrow = workshop.conversation(model, hook=begins(2), capacity=40)
    assert exhaust(narrow.ahead("What", 1)) == []
    assert model.rows == 0
    assert workshop.conversation(model).ahead("What", 1) is None


def test_a_forked_cache_has_the_rows_and_not_the_buffers(workshop):
    decoder, ids = workshop.decoder(), torch.arange(3, 23)
    whole, one, two = KvCache(64), KvCache(64), KvCache(64)
    expected = decoder.forward(ids, whole, 1)
    decoder.forward(ids[:12], one, 1)
    two.fork(one, 9)
    assert (one.length, two.length) == (12, 9)
    for cache in (two, one):
        logits = decoder.forward(ids[cache.length :], cache, 1)
        assert torch.allclose(logits, expected, atol=1e-9)
