"""Speculative decoding says exactly what the target alone would say, whatever the draft."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceloop.llm.sampling import Sampling, choose, gumbel
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models
KINDS = ("llama", "qwen2", "qwen3", "gpt2", "gemma")
DRAFTS = ("same", "random", "wrong", "unsteady")
LENGTHS = (None, 1, 2, 4, 8)
GREEDY, SAMPLED = Sampling(), Sampling(0.8, top_k=40, top_p=0.95, seed=7)
PROMPTS = [
    "What is the capital of France?",
    "Tell me a story.",
    "I",
    "Wie spät ist es? 🌍",
    "What time is it? " * 5,
]


def alone(workshop, kind, prompt, sampling, turn, n):
    """`n` tokens of the target alone, each from a whole pass of transformers without a cache."""
    ids = list(prompt)
    for position in range(n):
        with torch.no_grad():
            logits = workshop.model(kind)(torch.tensor([ids])).logits[0, -1:]
        noise = gumbel(sampling, turn, position, 1, workshop.vocab, logits.device)
        ids.append(int(choose(logits, sampling, noise)))
    return ids[len(prompt) :]


def say(conversation, text, turn=1):
    """The ids of a whole reply, and the bursts."""
    bursts = [item for item in conversation.reply(text, turn) if isinstance(item, TokenBurst)]
    return bursts, list(conversation.ids[conversation._reply.start :])


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_draft_at_every_length_leaves_the_targets_own_reply(workshop, kind, sampling):
    target = workshop.decoder(kind)
    for i, text in enumerate(PROMPTS):
        plain = workshop.conversation(target, None, sampling, eos=frozenset(), max_new_tokens=24)
        _, expected = say(plain, text)
        prompt = plain.ids[: plain._reply.start]
        assert expected == alone(workshop, kind, prompt, sampling, 1, 24)
        for j, name in enumerate(DRAFTS):  # each with each length, over the prompts
            conversation = workshop.conversation(
                target, workshop.draft(name, kind), sampling, length=LENGTHS[(i + j) % 5],
                eos=frozenset(), max_new_tokens=24,
            )  # fmt: skip
            assert say(conversation, text)[1] == expected, (name, text)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_decoding_is_that_of_transformers_generate(workshop, kind):
    conversation = workshop.conversation(workshop.decoder(kind), workshop.draft("random", kind))
    _, ids = say(conversation, PROMPTS[0])
    prompt = torch.tensor([conversation.ids[: conversation._reply.start]])
    end = workshop.tokenizer.eos_token_id
    output = workshop.model(kind).generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=False,
        max_new_tokens=32,
        eos_token_id=end,
        pad_token_id=end,
    )
    assert [token for token in output[0, prompt.shape[1] :].tolist() if token != end] == ids


@settings(max_examples=40)
@given(
    text=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=30),
    draft=st.sampled_from(DRAFTS),
    length=st.sampled_from([None, 1, 3, 5, 8]),
    limit=st.integers(1, 20),
    end=st.integers(0, 19),
    sampling=st.sampled_from([GREEDY, SAMPLED]),
)
def test_a_reply_ends_before_its_end_token_and_at_its_limit_even_within_a_burst(
    workshop, text, draft, length, limit, end, sampling
):
    target = workshop.decoder()
    _, whole = say(
        workshop.conversation(target, None, sampling, eos=frozenset(), max_new_tokens=20), text
    )
    stop = whole[end]
    conversation = workshop.conversation(
        target,
        workshop.draft(draft),
        sampling,
        length=length,
        eos=frozenset([stop]),
        max_new_tokens=limit,
    )
    bursts, ids = say(conversation, text)
    assert ids == whole[: min(whole.index(stop), limit)]
    assert all(stop not in burst.ids for burst in bursts)


def test_counters_tell_a_good_draft_from_a_bad_one(workshop):
    def counters(draft, sampling):
        conversation = workshop.conversation(
            workshop.decoder(), workshop.draft(draft), sampling, length=4, eos=frozenset(),
            max_new_tokens=41,
        )  # fmt: skip
        say(conversation, PROMPTS[0])
        return conversation.counters

    for sampling in (GREEDY, SAMPLED):
        same = counters("same", sampling)
        assert same.drafted == same.tested == same.accepted == 32
        assert same.target_passes == 1 + 8  # the first token, then five a round
        unsteady = counters("unsteady", sampling)
        assert 0 < unsteady.accepted < unsteady.tested <= unsteady.drafted
    wrong = counters("wrong", GREEDY)
    assert wrong.accepted == 0 and wrong.tested == wrong.target_passes - 2  # no draft for the last
    assert wrong.target_passes == 41
    none = counters("none", GREEDY)
    assert none.drafted == 0 and none.target_passes == 41


def test_the_first_token_leaves_before_the_draft_is_asked(workshop):
    draft = workshop.decoder(seed=1)
    passes = []

    class Watched:
        vocab, parameters, device = draft.vocab, draft.parameters, draft.device

        def forward(self, ids, cache, keep):
            passes.append(len(ids))
            return draft.forward(ids, cache, keep)

    conversation = workshop.conversation(workshop.decoder(), Watched(), eos=frozenset())
    steps = conversation.reply(PROMPTS[0], 1)
    first = next(steps)
    assert len(first.ids) == 1 and not passes
    next(steps)
    next(steps)
    assert passes


def test_seeds_and_turns_change_what_is_said_and_nothing_else_does(workshop):
    def said(seed, turn):
        sampling = Sampling(1.0, seed=seed)
        conversation = workshop.conversation(workshop.decoder(), None, sampling)
        return say(conversation, PROMPTS[0], turn)[1]

    assert said(1, 1) == said(1, 1)
    assert len({tuple(said(seed, turn)) for seed in (1, 2) for turn in (1, 2)}) == 4


def test_bursts_say_what_was_drafted_and_what_of_it_stood(workshop):
    conversation = workshop.conversation(
        workshop.decoder(), workshop.draft("same"), length=3, eos=frozenset(), max_new_tokens=9
    )
    bursts, _ = say(conversation, PROMPTS[1])
    assert [(len(b.ids), b.drafted, b.accepted) for b in bursts] == [
        (1, 0, 0),
        (4, 3, 3),
        (4, 3, 3),
    ]
