"""Lossless: what is said is what the target alone would say, or something of the same
distribution, whatever the draft, the number of its tokens, the architecture and the options."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
import torch

from tests.llm import replies
from tests.llm.conftest import KINDS, WINDOWED
from tests.llm.distributions import CPU, Table, p_value
from tests.llm.replies import (
    DRAFTS,
    GREEDY,
    LENGTHS,
    MODE_NAMES,
    MODES,
    NONE,
    prompts,
    say,
    speculator,
)
from tests.llm.ties import Uneven, ties
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.rules.sampling import Noise, Penalties, Sampling, choose, warp
from voiceloop.llm.rules.stats import LlmCounters

pytestmark = pytest.mark.models


@pytest.fixture(autouse=True, params=["plain", "captured"])
def _rounds(request, monkeypatch):
    """All of it holds for captured rounds as well."""
    monkeypatch.setattr(replies, "CAPTURED", request.param == "captured")
    before = replies.Anew.replays
    yield
    assert (replies.Anew.replays > before) == (request.param == "captured")


def alone(workshop, kind, sampling, prompt, turn, n):
    """`n` tokens of the target alone, each from a whole pass of transformers without a cache."""
    ids, noise = list(prompt), Noise(sampling.seed, workshop.vocab, CPU)
    penalties = Penalties(sampling, workshop.vocab, CPU)
    for position in range(n):
        with torch.no_grad():
            logits = workshop.model(kind)(torch.tensor([ids])).logits[0, -1:]
        penalties.count(ids, len(prompt))
        scores = warp(penalties.apply(logits, NONE), sampling)
        row = noise.gumbel(noise.keys(turn, position, 1))
        ids.append(int(choose(scores, row if sampling.temperature else None)))
    return ids[len(prompt) :]


# ---- the target's own tokens


@pytest.mark.parametrize("sampling", MODES, ids=MODE_NAMES)
@pytest.mark.parametrize("kind", KINDS + WINDOWED)
def test_the_target_alone_is_that_of_transformers_whatever_the_draft(workshop, kind, sampling):
    model = workshop.decoder(kind)  # transformers normalises in single precision, whatever it is
    for i, prompt in enumerate(prompts(workshop.vocab, 3)):
        expected = alone(workshop, kind, sampling, prompt, 1, 10)
        for draft in (None, workshop.draft(("random", "unsteady", "same")[i], kind)):
            made = speculator(model, draft, sampling, 3)
            assert ties(model, sampling, prompt, say(made, prompt, 10).ids, expected) <= 1


SIZES = [
    pytest.param(25, 32, 2, id="quick"),
    pytest.param(200, 64, 8, id="all", marks=pytest.mark.full),
]


@pytest.mark.parametrize(("count", "tokens", "share"), SIZES)
@pytest.mark.parametrize("sampling", MODES, ids=MODE_NAMES)
def test_every_draft_at_every_length_leaves_the_targets_own_reply(
    workshop, sampling, count, tokens, share
):
    target, drafted, accepted = workshop.decoder(), Counter(), Counter()
    cases = itertools.cycle(itertools.product(DRAFTS, (*LENGTHS, None)))
    for prompt in prompts(workshop.vocab, count):
        expected = say(speculator(target, None, sampling, None), prompt, tokens).ids
        for name, length in itertools.islice(cases, share):  # in turn
            draft = name if name == "ngram" else workshop.draft(name)
            made = speculator(target, draft, sampling, length)
            assert say(made, prompt, tokens).ids == expected, (name, length)
            drafted[name] += made.stats.total.drafted
            accepted[name] += made.stats.total.accepted
    assert accepted["same"] == drafted["same"] > 0
    assert 0 < accepted["unsteady"] < drafted["unsteady"]
    assert accepted["wrong"] < 0.1 * drafted["wrong"]
    assert drafted["random"] > accepted["random"]
    if sampling is GREEDY:  # which repeats itself
        assert 0 < accepted["ngram"] < drafted["ngram"]


@pytest.mark.parametrize(
    ("count", "tokens"),
    [
        pytest.param(3, 32, id="quick"),
        pytest.param(500, 64, id="all", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 0.8], ids=["greedy", "sampled"])
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_says_the_same_with_every_kind_of_draft(
    workshop, kind, precision, temperature, count, tokens
):
    sampling, exact = Sampling(temperature, seed=7), workshop.decoder(kind)
    target = exact if precision == "double" else workshop.single(kind)[1]
    drafted, accepted, found = Counter(), Counter(), 0
    for prompt in prompts(workshop.vocab, count):
        plain = say(speculator(target, None, sampling, 4), prompt, tokens).ids
        drafts = [("ngram", "ngram"), ("model", Told(target, len(prompt), plain))]
        if precision == "double":
            drafts.append(("layer", workshop.layer(kind)))
        for name, draft in drafts:
            told = workshop.decoder(kind, features=True) if name == "layer" else target
            made = speculator(told, draft, sampling, 4)
            reply = say(made, prompt, tokens).ids
            drafted[name] += made.stats.total.drafted
            accepted[name] += made.stats.total.accepted
            found += ties(exact, sampling, prompt, plain, reply)
    assert 0 < accepted["model"] < drafted["model"]
    assert drafted["layer"] > 0 or precision == "single"
    assert drafted["ngram"] > 0 or count < 100  # few prompts may never repeat themselves
    assert not found or precision == "single"
    seen = f"{found} ties, {dict(accepted)} of {dict(drafted)}"
    print(f"{kind}, {precision}: {count} prompts, {seen}")


@pytest.mark.parametrize("temperature", [0.0, 0.8], ids=["greedy", "sampled"])
def test_where_rounding_depends_on_the_rows_of_a_pass_replies_are_the_same_but_for_ties(
    workshop, temperature
):
    sampling, target = Sampling(temperature, seed=7), Uneven(workshop.single("llama")[1])
    passes = [target.forward(torch.arange(rows), KvCache(9), 1) for rows in (1, 2, 3, 8)]
    assert not torch.equal(passes[0], target.inner.forward(torch.arange(1), KvCache(9), 1))
    found = 0
    for prompt in prompts(workshop.vocab, 20):
        plain = say(speculator(target, None, sampling, None), prompt, 48).ids
        told = Told(target, len(prompt), plain)
        reply = say(speculator(target, told, sampling, 4), prompt, 48).ids
        found += ties(target.inner, sampling, prompt, plain, reply)
        wrong = [*plain]
        wrong[20] = (wrong[20] + 1) % workshop.vocab
        with pytest.raises(AssertionError, match="apart"):
            ties(target.inner, sampling, prompt, plain, wrong)
    assert found < 5  # of 20 replies


class Told:
    """A draft that was told the reply, and gets every fifth token wrong."""

    def __init__(self, target, prompt, reply):
        self.vocab, self.parameters, self.device = target.vocab, 1, CPU
        self.dtype, self.attends_bucket, self.pass_bytes = target.dtype, True, 0
        self.chunk = target.chunk
        self._prompt = prompt
        self._tokens = [(token + (at % 5 == 4)) % target.vocab for at, token in enumerate(reply)]

    def forward(self, ids, cache, keep):
        cache.extend(0, ids.view(-1, 1, 1))
        cache.advance(len(ids))
        return self._told(cache.length, keep)

    def forward_at(self, ids, place, keep):
        place.write(0, place.rows(place.positions(len(ids))), ids.view(-1, 1, 1))
        return self._told(int(place.start) + len(ids), keep)

    def _told(self, end, keep):
        place = end - self._prompt
        follows = self._tokens[place] if 0 <= place < len(self._tokens) else 0
        logits = torch.zeros(keep, self.vocab, dtype=torch.float64)
        logits[-1, follows] = 1e4  # whatever noise is added
        return logits


def test_seeds_and_turns_change_what_is_said_and_nothing_else_does(workshop):
    (prompt,) = prompts(workshop.vocab, 1)

    def said(seed, turn):
        made = speculator(
            workshop.decoder(), workshop.draft("unsteady"), Sampling(1.0, seed=seed), 3
        )
        reply = say(made, prompt, 24, turn)
        counters = made.stats.counters
        assert 0 < counters.accepted < counters.drafted
        return tuple(reply.ids), [(step.drafted, step.accepted) for step in reply.rounds]

    assert said(1, 1) == said(1, 1)
    assert len({said(seed, turn)[0] for seed in (1, 2) for turn in (1, 2)}) == 4


# ---- the distribution of a reply, of several tokens end to end

GRID: dict[str, list[Any]] = {
    "temperature": [0.7, 1.0, 1.4],
    "top_k": [0, 4],
    "top_p": [1.0, 0.85],
    "min_p": [0.0, 0.08],
    "penalties": [(1.0, 0.0, 0.0), (1.6, 0.0, 0.0), (1.0, 0.9, 0.5)],
    "length": [1, 2, 4, 8],
    "draft": ["model", "ngram"],
}


CASES = [dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values())]
"""All combinations, of which a few are tried."""


def fit_of(case: dict[str, Any], samples: int, seed: int = 0) -> tuple[float, LlmCounters]:
    """P-value of the first three tokens of so many replies, and the counters."""
    repetition, presence, frequency = case["penalties"]
    sampling = Sampling(
        case["temperature"],
        case["top_k"],
        case["top_p"],
        case["min_p"],
        seed,
        repetition,
        presence,
        frequency,
    )
    target = Table(6, seed=1)
    draft = "ngram" if case["draft"] == "ngram" else target.like(2, 0.6)
    made = speculator(target, draft, sampling, case["length"])
    # What an n-gram proposes has to be in the prompt.
    prompt = [0, 2, 3, 1, 3, 0, 4, 2, 2, 5, 1, 0, 3, 2, 4, 1, 2, 2, 3]
    counts = torch.zeros((6,) * 3)
    for turn in range(samples):
        made.rollback(len(prompt))
        counts[tuple(say(made, prompt, 3, turn, more=8).ids[:3])] += 1
    return p_value(counts.flatten(), target.joint(sampling, prompt, 3)), made.stats.total


SAMPLES = [
    pytest.param(150, id="quick"),
    pytest.param(8000, id="all", marks=pytest.mark.full),
]


@pytest.mark.parametrize("samples", SAMPLES)
def test_whatever_the_options_a_reply_has_the_targets_distribution(samples):
    accepted = drafted = 0
    for seed, case in enumerate(random.Random(0).sample(CASES, 16)):
        p, counters = fit_of(case, samples, seed)
        assert p > 1e-4, case
        assert counters.accepted > 0, case
        accepted, drafted = accepted + counters.accepted, drafted + counters.drafted
    assert accepted < 0.9 * drafted
