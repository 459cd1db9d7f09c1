"""Several replies to one prompt at once, of which the best one stays.

Each candidate chooses its tokens with the noise of a seed of its own, so it is what a conversation
with that seed would say. All of them are lines of one tree behind the prompt; as long as they say
the same, they share a draft as well. What tokens mean and which candidate is the best, this module
is told.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.model.stopwatch import Stopwatch
from voiceloop.llm.parallel.lines import Chooser, Line, Nodes
from voiceloop.llm.parallel.scorers import Candidate, Scorer, best
from voiceloop.llm.rules.sampling import Penalties, seeds
from voiceloop.llm.rules.stats import Stats, Step
from voiceloop.llm.rules.tree import ROOT, chain
from voiceloop.llm.rules.verify import Verifier


class Followed(Protocol):
    """What becomes of a candidate's tokens, see `voiceloop.llm.parallel.utterance`."""

    text: str
    complete: bool

    def push(self, token: int) -> bool:
        """Go on by a token; whether the candidate has come far enough to be judged."""
        ...


@dataclass(frozen=True, slots=True)
class BestOf:
    """How a reply is chosen among several."""

    count: int
    """Candidates: two or more."""
    score: Scorer
    clause: bool
    """The first clause of each is enough to choose it by."""


Guess = tuple[Sequence[int], float]
"""Draft tokens, and the milliseconds they took."""


class Candidates:
    """The candidates for the replies of one conversation, in the target's cache."""

    def __init__(
        self,
        target: Decoder,
        cache: KvCache,
        verifier: Verifier,
        penalties: Penalties,
        stats: Stats,
        watch: Stopwatch,
    ) -> None:
        """All of them are the conversation's own; `watch` tells how long the target takes."""
        self._target, self._cache = target, cache
        self._verifier, self._chooser = verifier, Chooser(verifier, penalties)
        self._stats, self._watch = stats, watch

    def decode(
        self,
        logits: Tensor,
        position: int,
        limit: int,
        how: BestOf,
        follow: Callable[[], Followed],
        draft: Callable[[Sequence[int]], Generator[None, None, Guess]],
    ) -> Generator[None, None, Step]:
        """Decode all candidates until each is done or has `limit` tokens, and keep the best.

        The cache holds the prompt, and `logits` [1, vocab] are those behind it; the first token is
        number `position` of the turn's. As long as all say the same, `draft` guesses what follows
        the tokens that it is given. Pauses before each pass. In the end the cache holds all but the
        last of the chosen tokens, and what follows them is drawn by their seed. Where it has no
        room for another token of each, they are judged as they are.
        """
        cache, nodes = self._cache, Nodes(self._cache.length)
        drawn = seeds(self._verifier.sampling.seed, how.count)
        said = [follow() for _ in drawn]
        lines = [Line(seed, limit, one.push) for seed, one in zip(drawn, said, strict=True)]
        self._chooser.walk(lines, nodes, logits, position)
        while going := [line for line in lines if not line.done]:
            room = cache.capacity - cache.length - len(going)
            if room < 0:
                break
            guess: Guess = [], 0.0
            if nodes.tree.is_chain and len({(line.node, line.tokens[-1]) for line in going}) == 1:
                guess = yield from draft(going[0].tokens)
            yield None
            nodes.add(going)
            self._pass(going, nodes, (guess[0][:room], guess[1]), position)
        line = lines[best(list(map(_candidate, lines, said)), how.score)]
        path = () if line.node == ROOT else nodes.tree.paths[line.node]
        unchosen, unchosen_ms = self._stats.chosen(nodes.root, path)
        cache.keep(nodes.root, path)
        self._verifier.follow(line.seed)
        return Step(tuple(line.tokens), unchosen=unchosen, unchosen_ms=unchosen_ms)

    def _pass(self, lines: Sequence[Line], nodes: Nodes, guess: Guess, position: int) -> None:
        """Compute what the cache has not seen of `nodes`, and what is guessed to follow the last of
        them; the rows of what was guessed wrongly are forgotten."""
        cache, start, sure = self._cache, self._cache.length, len(nodes.x)
        guessed, draft_ms = guess
        nodes.follow(sure - 1, guessed)
        with self._watch:
            logits = nodes.compute(self._target, cache)
            self._chooser.walk(lines, nodes, logits, position)
        accepted = max(0, max(line.node for line in lines) + 1 - sure)
        end = nodes.root + sure + accepted
        self._stats.rolled_back(end, cache.length)
        cache.rollback(end)
        nodes.cut(sure + accepted)
        self._stats.round(
            Step(
                tokens=tuple(line.tokens[-1] for line in lines),
                tree=chain(len(guessed)),
                path=range(accepted),
                start=start,
                rows=end - start,
                draft_ms=draft_ms,
                target_ms=self._watch.take(),
            )
        )


def _candidate(line: Line, said: Followed) -> Candidate:
    return Candidate(said.text, tuple(line.tokens), tuple(line.logprobs), said.complete)
