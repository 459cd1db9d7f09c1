"""Replies as they come from a `Speculator`, and the models and options they are tried with."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from voiceloop.llm.decode.captured import Captured, FixedRound, PlacedModel
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.draft.drafts import Draft, ModelDraft, NgramDraft
from voiceloop.llm.draft.featuredraft import FeatureDraft, FeatureModel
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.rules.draftpolicy import DraftPolicy
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.rules.stats import Step

DRAFTS = ("same", "random", "wrong", "unsteady", "ngram")
LENGTHS = range(1, 9)
CAPACITY = 512
NONE = torch.empty(0, dtype=torch.long)
GREEDY, SAMPLED = Sampling(), Sampling(0.8, top_k=40, top_p=0.95, seed=7)
PENALISED = replace(
    SAMPLED,
    repetition_penalty=1.3,
    presence_penalty=0.4,
    frequency_penalty=0.3,
    banned=frozenset([3, 4]),
)
MODES = [GREEDY, replace(PENALISED, temperature=0.0), SAMPLED, PENALISED]
MODE_NAMES = ["greedy", "greedy-penalised", "sampled", "sampled-penalised"]


def run(steps: Generator[None, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


CAPTURED = False
"""Whether rounds are captured ones."""


def speculator(
    target: Any, draft: Any, sampling: Sampling, length: int | None, **options: Any
) -> Speculator:
    """With `draft` a decoder, a trained layer, "ngram", or None."""
    rounds = options.pop("captured", None) or (
        captured(target, draft, sampling)
        if CAPTURED and not isinstance(draft, FeatureModel)
        else None
    )
    proposes: Draft | None = None
    cache = KvCache(CAPACITY, rounds and rounds.work.target.slots)
    if isinstance(draft, FeatureModel):
        proposes = FeatureDraft(draft, cache, sampling, CAPACITY)
    elif draft == "ngram":
        proposes = NgramDraft(target.device)
    elif draft is not None:
        placed = rounds and rounds.work.draft_model
        proposes = ModelDraft(draft, sampling, CAPACITY, slots=placed.slots if placed else None)
    lengths = DraftPolicy(length, 0.1)
    return Speculator(target, proposes, lengths, sampling, cache, captured=rounds, **options)


class Anew:
    """A graph that does its work anew each time, having spoiled what came of it before."""

    def __init__(self, work: Any) -> None:
        made: FixedRound = work.func.__self__
        self._work = work
        self._outputs = {"draft": (made.x,), "verify": (made.decided,)}[work.func.__name__]

    replays = 0
    """Of all graphs together."""

    def replay(self) -> None:
        Anew.replays += 1
        for output in self._outputs:
            output.fill_(torch.nan if output.is_floating_point() else -(2**40))
        self._work()


def captured(
    target: Any, draft: Any, sampling: Sampling, slots: int = 1, capacity: int = CAPACITY
) -> Captured:
    """Rounds for so many conversations; `draft` as `speculator` takes it."""
    placed = None if draft in (None, "ngram") else PlacedModel(draft, Slots(slots, capacity))
    return Captured(FixedRound(PlacedModel(target, Slots(slots, capacity)), placed, sampling), Anew)


@dataclass
class Reply:
    """A reply to a prompt, as it comes from a speculator."""

    speculator: Speculator
    prompt: Sequence[int]
    turn: int = 1
    ids: list[int] = field(default_factory=list)
    rounds: list[Step] = field(default_factory=list)

    def steps(
        self, tokens: int, old: Sequence[int] = (), more: int = 0
    ) -> Generator[None, None, None]:
        """Go on until there are so many, and up to `more` where they come with the last of these.

        Can be closed and begun again where it was.
        """
        if not self.ids:
            begun = yield from self.speculator.revise(Prompt(self.prompt, self.turn), old)
            self._keep(begun)
        while (position := len(self.ids)) < tokens:
            whole, left = [*self.prompt, *self.ids], tokens + more - position
            yield None
            self._keep((yield from self.speculator.round(whole, left)))

    def _keep(self, step: Step) -> None:
        self.rounds.append(step)
        self.ids += step.tokens


def say(
    speculator: Speculator,
    prompt: Sequence[int],
    tokens: int,
    turn: int = 1,
    old: Sequence[int] = (),
    more: int = 0,
) -> Reply:
    reply = Reply(speculator, prompt, turn)
    for _ in reply.steps(tokens, old, more):
        pass
    return reply


def prompts(vocab: int, count: int) -> list[list[int]]:
    """Some random, some that repeat themselves."""
    rng = random.Random(count)
    made = []
    for index in range(count):
        words = [rng.randrange(vocab) for _ in range(rng.randrange(1, 24))]
        made.append(words if index % 3 else words * 2)
    return made
