"""Decode several replies to one prompt, and keep the best one.

Each candidate has a seed and chooses its tokens with the noise of that seed. So it is the reply
that a conversation with that seed would give. All candidates are lines of one tree of tokens after
the prompt. While all have the same tokens, they also use the same draft tokens.

A scorer is a function of a `Candidate` alone; the reply with the largest score is the best. Further
scorers are registered as entry points of the group `voiceloop.scorer`. Such a scorer is imported
only when it is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from statistics import fmean

import torch

from voiceloop.errors import ConfigError
from voiceloop.llm.decode.hook import ReplyHook
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.model.timing import Stopwatch
from voiceloop.llm.rules.sampling import Sampling, seeds
from voiceloop.llm.rules.stats import Step
from voiceloop.llm.rules.verify import ROOT, chain
from voiceloop.llm.text.output import Output
from voiceloop.settings.schema import suggestion
from voiceloop_parallel.lines import CandidateUtterance, Chooser, Nodes, ParallelReply

GROUP = "voiceloop.scorer"
LONG_WORDS = 40
"""Number of words up to which `concise` does not score a reply lower for its length. A reply should
be short because it is heard, not read."""
GRAM = 3
"""Number of successive words that count as a repetition if they occur again. Fewer words may be a
common phrase."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several replies, or the beginning of one."""

    text: str
    """The text that would be spoken."""
    tokens: tuple[int, ...]
    """All decided tokens, including those of thoughts and tool calls and the one that ends the
    reply."""
    logprobs: tuple[float, ...]
    """The log-probability of each token for the target, before penalties and temperature."""
    complete: bool
    """Whether the candidate is a whole reply. The beginning of a reply may end anywhere."""


Scorer = Callable[[Candidate], float]


def likelihood(candidate: Candidate) -> float:
    """Return the mean log-probability of the candidate's tokens for the target, at most 0.

    The sum of the log-probabilities would prefer the shortest reply (Adiwardana et al. 2020, Meena,
    arXiv 2001.09977, section 2.4, "sample-and-rank").
    """
    return fmean(candidate.logprobs)


def concise(candidate: Candidate) -> float:
    """Return a score of at most 0 without using a model. Repetition and words beyond `LONG_WORDS`
    lower it. A reply without words scores -inf.

    Repetition is the share of runs of `GRAM` words that occurred before in the reply (1 minus
    distinct-n of Li et al. 2016, arXiv 1510.03055).
    """
    words = candidate.text.lower().split()
    if not words:
        return -math.inf
    runs = [tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)]
    repeated = 1 - len(set(runs)) / len(runs) if runs else 0.0
    return -repeated - max(0, len(words) - LONG_WORDS) / LONG_WORDS


BUILT_IN: Mapping[str, Scorer] = {"likelihood": likelihood, "concise": concise}


def scorer(name: str) -> Scorer:
    """Return the scorer called `name`. Raises ConfigError if none is registered under that name."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name not in found:
        hint = suggestion(name, [*BUILT_IN, *found])
        raise ConfigError(f"there is no scorer called '{name}'", hint)
    return found[name].load()


def best(candidates: Sequence[Candidate], score: Scorer) -> int:
    """Return the index of the candidate with the largest score; if several have it, the first
    one."""
    scores = [score(candidate) for candidate in candidates]
    return scores.index(max(scores))


@dataclass(frozen=True, slots=True)
class BestOf:
    """Settings of the choice among several replies."""

    count: int
    """The number of candidates, at least two."""
    score: Scorer
    clause: bool
    """Whether candidates are compared after their first clause, not after the whole reply."""


class Candidates(ReplyHook):
    """Begins each reply of a conversation with the best of several candidates.

    After a change of the prompt, an earlier reply is not used as a draft: another candidate may be
    the best one now, and to know that, all candidates must be decoded again.
    """

    def __init__(
        self,
        speculator: Speculator,
        target: Decoder,
        sampling: Sampling,
        how: BestOf,
        ends: frozenset[int],
    ) -> None:
        """`speculator`, `target` and `sampling` are the conversation's. `ends` are the tokens that
        end a reply."""
        self._speculator, self._target = speculator, target
        self._how, self._ends = how, ends
        self._chooser, self._seeds = Chooser(target, sampling), seeds(sampling.seed, how.count)
        self._watch = Stopwatch(target.device)

    def first(
        self, prompt: Prompt, limit: int, output: Callable[[], Output]
    ) -> Generator[None, None, Step]:
        """Decode the candidates and keep the best one. The facts of the step are `unchosen`, the
        number of tokens of the other candidates, and `unchosen_ms`, the milliseconds that they
        took."""
        return self.decode(
            prompt, limit, lambda: CandidateUtterance(output(), self._ends, clause=self._how.clause)
        )

    def decode(
        self, prompt: Prompt, limit: int, follow: Callable[[], CandidateUtterance]
    ) -> Generator[None, None, Step]:
        """Decode all candidates until each is done or has `limit` tokens, and keep the best one.

        `follow` makes the object that tells when a candidate is done. If the cache has no room for
        another token of each candidate, they are compared as they are. In the end the cache holds
        the prompt and the best candidate's tokens without the last one. The rest of the reply is
        drawn with the best candidate's seed.
        """
        done = False
        try:
            step = yield from self._decoded(prompt, limit, follow)
            done = True
        finally:
            if not done:
                self._speculator.rollback(len(prompt.ids))
        return step

    @torch.inference_mode()
    def _decoded(
        self, prompt: Prompt, limit: int, follow: Callable[[], CandidateUtterance]
    ) -> Generator[None, None, Step]:
        logits = yield from self._speculator.read(prompt)
        cache = self._speculator.cache
        nodes, utterances = Nodes(cache.length), [follow() for _ in self._seeds]
        lines = [
            ParallelReply(seed, limit, one.push)
            for seed, one in zip(self._seeds, utterances, strict=True)
        ]
        self._chooser.begin(prompt.turn, prompt.earlier)
        self._chooser.walk(lines, nodes, logits, prompt.position)
        while going := [line for line in lines if not line.done]:
            room = cache.capacity - cache.length - len(going)
            if room < 0:
                break
            drafted, draft_ms = list[int](), 0.0
            if nodes.tree.is_chain and len({(line.node, line.tokens[-1]) for line in going}) == 1:
                begun = going[0].tokens
                drafted, draft_ms = yield from self._speculator.propose(
                    [*prompt.ids, *begun], limit - len(begun) - 1
                )
            yield None
            nodes.add(going)
            self._pass(going, nodes, drafted[:room], draft_ms, prompt.position)
        return self._best(lines, utterances, nodes)

    def _best(
        self, lines: Sequence[ParallelReply], utterances: Sequence[CandidateUtterance], nodes: Nodes
    ) -> Step:
        """Keep only the rows of the best candidate in the cache; return its tokens."""
        line = lines[best(list(map(_candidate, lines, utterances)), self._how.score)]
        path = () if line.node == ROOT else nodes.tree.paths[line.node]
        unchosen, unchosen_ms = self._speculator.stats.chosen(nodes.root, path)
        self._speculator.cache.keep(nodes.root, path)
        self._speculator.follow(line.seed)
        return Step(tuple(line.tokens), facts={"unchosen": unchosen, "unchosen_ms": unchosen_ms})

    def _pass(
        self,
        lines: Sequence[ParallelReply],
        nodes: Nodes,
        drafted: Sequence[int],
        draft_ms: float,
        position: int,
    ) -> None:
        """Add the draft tokens `drafted` after the last node. Compute all nodes that the cache
        lacks, and let each of `lines` choose its next tokens. Remove the rows of rejected draft
        tokens."""
        cache, stats = self._speculator.cache, self._speculator.stats
        start, sure = cache.length, len(nodes.x)
        nodes.follow(sure - 1, drafted)
        with self._watch:
            logits = nodes.compute(self._target, cache)
            self._chooser.walk(lines, nodes, logits, position)
        accepted = max(0, max(line.node for line in lines) + 1 - sure)
        end = nodes.root + sure + accepted
        stats.rolled_back(end, cache.length)
        cache.rollback(end)
        nodes.cut(sure + accepted)
        stats.round(
            Step(
                tokens=tuple(line.tokens[-1] for line in lines),
                tree=chain(len(drafted)),
                path=range(accepted),
                start=start,
                rows=end - start,
                draft_ms=draft_ms,
                target_ms=self._watch.take(),
            )
        )


def _candidate(line: ParallelReply, utterance: CandidateUtterance) -> Candidate:
    return Candidate(utterance.text, tuple(line.tokens), tuple(line.logprobs), utterance.complete)
