"""Each of several candidates is what its seed says alone, the best is kept, and all else is as if
it had been alone."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from voiceloop_parallel.candidates import BestOf, Candidate, Candidates, likelihood
from voiceloop_parallel.lines import CandidateUtterance

from tests.llm.replies import GREEDY, PENALISED, SAMPLED, prompts, run, say, speculator
from tests.llm.test_speculate import caches_are_right
from voiceloop.llm.decode.hook import MakeHook
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.draft.featuredraft import FeatureModel
from voiceloop.llm.rules.sampling import Sampling, seeds
from voiceloop.llm.rules.stats import Step
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models

N, LIMIT, MORE = 4, 24, 12
SAMPLINGS = pytest.mark.parametrize("sampling", [SAMPLED, PENALISED], ids=["sampled", "penalised"])


class Until(CandidateUtterance):
    """Ends a candidate with a token of a certain kind, so that some are longer than others."""

    def __init__(self) -> None:
        self.text, self.complete = "", False

    def push(self, token: int) -> bool:
        self.complete = token % 7 == 0
        return self.complete


class Judge:
    """A scorer that remembers what it was shown, and has a favourite."""

    def __init__(self, favourite: int = 0) -> None:
        self.shown: list[Candidate] = []
        self._favourite = favourite

    def __call__(self, candidate: Candidate) -> float:
        self.shown.append(candidate)
        return len(self.shown) == self._favourite + 1


def choosing(how: BestOf) -> MakeHook:
    """What lets a conversation choose among several replies."""
    return lambda speculator, target, sampling, _, ends: Candidates(
        speculator, target, sampling, how, ends
    )


def steps_of(
    made: Speculator, prompt: Sequence[int], score: Any, count: int = N
) -> Generator[None, None, Step]:
    how, sampling = BestOf(count, score, clause=False), made._verifier.sampling
    candidates = Candidates(made, made._target, sampling, how, frozenset())
    return candidates.decode(Prompt(prompt, 1), LIMIT, Until)


def begun(made: Speculator, prompt: Sequence[int], score: Any, count: int = N) -> Step:
    return run(steps_of(made, prompt, score, count))


def ended(tokens: Sequence[int]) -> list[int]:
    """A reply up to where `Until` ends it."""
    end = next((at for at, token in enumerate(tokens) if token % 7 == 0), len(tokens))
    return list(tokens[: end + 1])


def seen_of(shown: Sequence[Candidate]) -> set[tuple[int, ...]]:
    """What the target was fed of candidates: all but the last token of each, what several begin
    with once."""
    return {one.tokens[:end] for one in shown for end in range(1, len(one.tokens))}


def logprobs(model: Any, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """Of tokens behind a prompt, from a whole pass of transformers."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *tokens]])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1)[range(len(tokens)), list(tokens)].tolist()


@SAMPLINGS
@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2", "windowed-gemma3", "windowed-phi3"])
def test_each_candidate_is_what_its_seed_says_alone_and_the_best_is_that_of_brute_force(
    workshop, kind, sampling
):
    target, longest, first = workshop.decoder(kind), 0, 0
    for prompt in prompts(workshop.vocab, 6):
        judge = Judge()
        begun(speculator(target, None, sampling, None), prompt, judge)
        alone = [
            ended(say(speculator(target, None, seeded, None), prompt, LIMIT).ids)
            for seeded in (replace(sampling, seed=seed) for seed in seeds(sampling.seed, N))
        ]
        assert [list(candidate.tokens) for candidate in judge.shown] == alone
        means = []
        for candidate in judge.shown:
            expected = logprobs(workshop.model(kind), prompt, candidate.tokens)
            assert list(candidate.logprobs) == pytest.approx(expected, abs=1e-5)
            assert candidate.complete == (candidate.tokens[-1] % 7 == 0)
            means.append(sum(expected) / len(expected))
        step = begun(speculator(target, None, sampling, None), prompt, likelihood)
        assert list(step.tokens) == alone[means.index(max(means))]
        longest += len({len(tokens) for tokens in alone}) > 1
        first += alone[0] == list(step.tokens)
    assert longest and first < 6  # some ended before others, and not always the first was the best


@SAMPLINGS
@pytest.mark.parametrize("draft", ["none", "unsteady", "layer"])
@pytest.mark.parametrize("favourite", range(N))
def test_a_chosen_candidate_goes_on_as_its_seed_would_alone(workshop, sampling, draft, favourite):
    trained = draft == "layer"
    target = workshop.decoder(features=trained)
    model = workshop.layer() if trained else workshop.draft(draft)
    seed = seeds(sampling.seed, N)[favourite]
    for prompt in prompts(workshop.vocab, 2):
        made = speculator(target, model, sampling, 3)
        step = begun(made, prompt, Judge(favourite))
        ids = [*prompt, *step.tokens]
        assert made.cache.length == len(ids) - 1
        while len(ids) < len(prompt) + LIMIT + MORE:
            ids += run(made.round(ids, MORE)).tokens
            models = (target,) if isinstance(model, FeatureModel) else (target, model)
            caches_are_right(made, ids, [getattr(one, "inner", one) for one in models])
        alone = speculator(target, None, replace(sampling, seed=seed), None)
        said = say(alone, prompt, len(ids) - len(prompt)).ids
        assert ids == [*prompt, *said]


def test_the_next_reply_is_drawn_by_the_first_seed_again(workshop):
    prompt = prompts(workshop.vocab, 1)[0]
    made = speculator(workshop.decoder(), None, SAMPLED, None)
    begun(made, prompt, Judge(2))
    made.rollback(0)
    expected = say(speculator(workshop.decoder(), None, SAMPLED, None), prompt, 9, turn=2).ids
    assert say(made, prompt, 9, turn=2).ids == expected


@pytest.mark.parametrize("length", [3, 150])
def test_closed_at_any_pause_nothing_is_left_of_candidates(workshop, length):
    target = workshop.decoder()
    prompt = [(3 * at + 1) % workshop.vocab for at in range(length)]
    expected = begun(speculator(target, None, SAMPLED, None), prompt, likelihood)
    pauses, done = 0, False
    made = speculator(target, workshop.draft("unsteady"), SAMPLED, 3)
    while not done:
        steps = steps_of(made, prompt, likelihood)
        done = len([None for _ in zip(range(pauses), steps, strict=False)]) < pauses
        steps.close()
        if not done:
            caches_are_right(made, prompt, (target,))
        pauses += 1
    assert pauses > 5
    made.rollback(0)
    step = begun(made, prompt, likelihood)
    assert step.tokens == expected.tokens


def test_candidates_that_say_the_same_are_computed_once(workshop):
    target, prompt = workshop.decoder(), prompts(workshop.vocab, 2)[1]
    made = speculator(target, None, GREEDY, None)
    step = begun(made, prompt, likelihood)
    assert step.facts["unchosen"] == 0
    assert list(step.tokens) == ended(
        say(speculator(target, None, GREEDY, None), prompt, LIMIT).ids
    )


@pytest.mark.parametrize("draft", ["same", "unsteady", "wrong"])
def test_as_long_as_all_say_the_same_they_share_a_draft(workshop, draft):
    target, sure = workshop.decoder(), replace(PENALISED, temperature=0.01)
    prompt, alone = max(
        (
            (prompt, ended(say(speculator(target, None, sure, None), prompt, LIMIT).ids))
            for prompt in prompts(workshop.vocab, 9)
        ),
        key=lambda found: len(found[1]),
    )
    made = speculator(target, workshop.draft(draft), sure, 4)
    judge = Judge()
    step = begun(made, prompt, judge)
    assert [list(one.tokens) for one in judge.shown] == [alone] * N
    counters = made.stats.counters
    assert counters.drafted > 0 and step.facts["unchosen"] == 0
    assert (counters.accepted > 0) == (draft != "wrong")
    assert counters.target_passes == len(step.tokens) - counters.accepted
    assert counters.wasted == counters.drafted - counters.accepted


@pytest.mark.parametrize("penalised", [False, True])
def test_candidates_that_part_within_a_draft_are_those_of_their_seeds(workshop, penalised):
    sampling = replace(SAMPLED, temperature=0.5, frequency_penalty=-1.5 if penalised else 0.0)
    target, parted = workshop.decoder(), 0
    for prompt in prompts(workshop.vocab, 24):
        made, judge = speculator(target, target, sampling, 6), Judge()
        step = begun(made, prompt, judge)
        alone = [
            ended(say(speculator(target, None, seeded, None), prompt, LIMIT).ids)
            for seeded in (replace(sampling, seed=seed) for seed in seeds(sampling.seed, N))
        ]
        assert [list(one.tokens) for one in judge.shown] == alone
        parted += made.stats.counters.accepted > 0 and step.facts["unchosen"] > 0
    assert parted > 2


def test_the_draft_knows_nothing_of_a_candidate_that_was_not_chosen(workshop):
    target, guessed = workshop.decoder(), 0
    for prompt in prompts(workshop.vocab, 9):
        for favourite in range(2):
            made = speculator(target, target, SAMPLED, 3)
            judge = Judge(favourite)
            step = begun(made, prompt, judge, 2)
            caches_are_right(made, [*prompt, *step.tokens], (target, target))
            one, other = judge.shown
            guessed += len(one.tokens) != len(other.tokens)  # one is done, and the other goes on
    assert guessed > 4


def test_what_candidates_cost_is_counted_once(workshop):
    target, prompt = workshop.decoder(), prompts(workshop.vocab, 2)[1]
    made = speculator(target, None, SAMPLED, None)
    judge = Judge(1)
    step = begun(made, prompt, judge)
    counters, shown = made.stats.counters, judge.shown
    rows = len(seen_of(shown))
    assert step.facts["unchosen"] == rows - len(step.tokens) + 1 > 0
    assert counters.target_passes == max(len(one.tokens) for one in shown)
    assert counters.wasted == counters.wasted_ms == 0
    assert 0 < (unchosen_ms := step.facts["unchosen_ms"]) < counters.target_ms
    made.rollback(0)
    rows = len(prompt) + len(step.tokens) - 1
    assert made.stats.counters.wasted == rows
    assert math.isclose(made.stats.counters.wasted_ms + unchosen_ms, counters.target_ms)


def test_where_there_is_no_room_for_all_they_are_judged_as_they_are(workshop):
    target, prompt = workshop.decoder(), prompts(workshop.vocab, 2)[1]
    made = speculator(target, None, SAMPLED, None)
    made.cache.capacity = len(prompt) + 3
    judge = Judge(3)
    step = begun(made, prompt, judge)
    whole = Judge()
    begun(speculator(target, None, SAMPLED, None), prompt, whole)
    assert len(seen_of(judge.shown)) <= 3 and not all(one.complete for one in judge.shown)
    for short, long in zip(judge.shown, whole.shown, strict=True):
        assert long.tokens[: len(short.tokens)] == short.tokens
    ids = [*prompt, *step.tokens]
    caches_are_right(made, ids, (target,))
    assert made.cache.length == len(ids) - 1


# ---- in a conversation


def exhaust(steps: Any) -> list[Any]:
    return [item for item in steps if item is not None]


@pytest.mark.parametrize("clause", [True, False], ids=["clause", "reply"])
@pytest.mark.parametrize("draft", ["none", "unsteady"])
def test_a_conversation_says_what_the_best_of_several_conversations_would(workshop, draft, clause):
    target, sampling, best, text = workshop.decoder(), Sampling(0.9, seed=3), set[int](), "What?"
    own = seeds(sampling.seed, N)
    for favourite in range(N):
        how = BestOf(N, Judge(favourite), clause)
        model = workshop.draft(draft)
        talk = workshop.conversation(target, model, sampling, hook=choosing(how))
        alone = workshop.conversation(target, model, replace(sampling, seed=own[favourite]))
        items = exhaust(talk.reply(text, 1))
        said = exhaust(alone.reply(text, 1))
        assert "".join(item.text for item in items) == "".join(item.text for item in said)
        assert talk.ids == alone.ids
        assert (len(items) == 1) or clause
        told = [item.facts for item in items if isinstance(item, TokenBurst)]
        assert told[0]["unchosen"] >= 0 and not any(told[1:])
        best.add(hash(talk.ids))
    assert len(best) > 1


@pytest.mark.parametrize("clause", [True, False], ids=["clause", "reply"])
def test_a_revised_reply_is_the_best_behind_the_new_words(workshop, clause):
    target, sampling, how = workshop.decoder(), Sampling(0.9, seed=3), BestOf(N, likelihood, clause)
    talk, fresh = (
        workshop.conversation(target, workshop.draft("unsteady"), sampling, hook=choosing(how))
        for _ in range(2)
    )
    exhaust(talk.reply("What is", 1))
    exhaust(talk.revise("What is it?", 1))
    exhaust(fresh.reply("What is it?", 1))
    assert talk.ids == fresh.ids
    for conversation in (talk, fresh):
        exhaust(conversation.reply("And then?", 2))
    assert talk.ids == fresh.ids


def test_a_reply_that_ends_early_is_complete_without_what_would_follow(workshop):
    target, judge = workshop.scripted("One, two, three.", "Four."), Judge()
    options: Any = {"hook": choosing(BestOf(N, judge, clause=False)), "stop": (" three",)}
    talk = workshop.conversation(target, None, Sampling(0.01, seed=1), **options)
    assert "".join(item.text for item in exhaust(talk.reply("Count.", 1))) == "One, two,"
    assert [(one.text, one.complete) for one in judge.shown] == [("One, two,", True)] * N
    judge.shown.clear()
    exhaust(talk.reply("Go on.", 2))
    assert [(one.text, one.complete) for one in judge.shown] == [("Four.", True)] * N
    assert judge.shown[0].tokens[-1] == workshop.tokenizer.eos_token_id
