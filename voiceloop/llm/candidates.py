"""Several replies to one prompt at once, of which the best one stays.

Each candidate chooses its tokens with the noise of a seed of its own, so it is what a conversation
with that seed would say. All of them are one tree behind the prompt: a pass gives the next token of
each, and those that have said the same so far share their rows. What tokens mean and which
candidate is the best, this module is told.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from voiceloop.llm.attention import followed
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import Decoder
from voiceloop.llm.sampling import Penalties, exact, seeds
from voiceloop.llm.scorers import Candidate, Scorer, best
from voiceloop.llm.stats import Stats, Step
from voiceloop.llm.stopwatch import Stopwatch
from voiceloop.llm.tree import ROOT, Tree
from voiceloop.llm.verify import Verifier


class Followed(Protocol):
    """What becomes of a candidate's tokens, see `voiceloop.llm.utterance`."""

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


@dataclass(slots=True)
class _Line:
    """One candidate."""

    seed: int
    said: Followed
    limit: int
    """Most tokens."""
    tokens: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    node: int = ROOT
    """The last of its tokens that the target has seen."""
    done: bool = False

    def add(self, token: int, logprob: float) -> None:
        """Go on by a token."""
        self.tokens.append(token)
        self.logprobs.append(logprob)
        self.done = self.said.push(token) or len(self.tokens) == self.limit

    @property
    def candidate(self) -> Candidate:
        said = self.said
        return Candidate(said.text, tuple(self.tokens), tuple(self.logprobs), said.complete)


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
        self._verifier, self._penalties = verifier, penalties
        self._stats, self._watch = stats, watch

    def decode(
        self,
        logits: Tensor,
        position: int,
        limit: int,
        how: BestOf,
        follow: Callable[[], Followed],
    ) -> Generator[None, None, Step]:
        """Decode all candidates until each is done or has `limit` tokens, and keep the best.

        The cache holds the prompt, and `logits` [1, vocab] are those behind it; the first token is
        number `position` of the turn's. Pauses before each pass. In the end the cache holds all but
        the last of the chosen tokens, and what follows them is drawn by their seed. Where it has no
        room for another token of each, they are judged as they are.
        """
        cache, root = self._cache, self._cache.length
        own = self._verifier.sampling.seed
        lines = [_Line(seed, follow(), limit) for seed in seeds(own, how.count)]
        x, tree = list[int](), Tree(())
        self._choose(lines, [0] * len(lines), logits, self._scores(logits, x, tree), position)
        while going := [line for line in lines if not line.done]:
            start, known = cache.length, len(tree)
            if start + len(going) > cache.capacity:
                break
            yield None
            position += 1
            x, tree = _grown(x, tree, going)
            rows = [line.node - known for line in going]
            with self._watch:
                new = torch.tensor(x[known:], device=self._target.device)
                logits = self._target.forward_tree(new, cache, tree, len(new))
                self._choose(going, rows, logits, self._scores(logits, x, tree), position)
            tokens, ms = tuple(line.tokens[-1] for line in going), self._watch.take()
            self._stats.target_pass(Step(tokens, start=start, rows=len(new), target_ms=ms))
        line = lines[best([line.candidate for line in lines], how.score)]
        path = () if line.node == ROOT else tree.paths[line.node]
        unchosen, unchosen_ms = self._stats.chosen(root, path)
        cache.keep(root, path)
        self._verifier.follow(line.seed)
        return Step(tuple(line.tokens), unchosen=unchosen, unchosen_ms=unchosen_ms)

    def _scores(self, logits: Tensor, x: Sequence[int], tree: Tree) -> Tensor:
        """The `logits` after the last of the nodes `x` of a tree, penalised."""
        penalties = self._penalties
        if not penalties.counting:
            return penalties.apply(logits, logits.new_empty(0, dtype=torch.long))
        follows = followed(tree, logits.device)[-len(logits) :]
        return penalties.apply(logits, torch.tensor(x, device=logits.device), follows=follows)

    def _choose(
        self,
        lines: Sequence[_Line],
        rows: Sequence[int],
        logits: Tensor,
        scores: Tensor,
        position: int,
    ) -> None:
        """Add to each of `lines` its token number `position` of the turn's, by its row of the
        `logits`, whose penalised `scores` decide."""
        chosen = self._verifier.choices(scores, rows, [line.seed for line in lines], position)
        likely = exact(logits).log_softmax(-1)[list(rows)].gather(1, chosen.unsqueeze(1))
        tokens, logprobs = cast(Any, chosen).tolist(), cast(Any, likely.squeeze(1)).tolist()
        for line, token, logprob in zip(lines, tokens, logprobs, strict=True):
            line.add(token, logprob)


def _grown(x: Sequence[int], tree: Tree, lines: Sequence[_Line]) -> tuple[list[int], Tree]:
    """The tokens of a tree and the tree, with the last token of each of `lines`, which get to know
    their nodes: those that have said the same have one."""
    found = {(line.node, line.tokens[-1]): 0 for line in lines}
    for number, place in enumerate(found):
        found[place] = len(tree) + number
    for line in lines:
        line.node = found[line.node, line.tokens[-1]]
    parents, tokens = zip(*found, strict=True)
    return [*x, *tokens], Tree((*tree.parents, *parents))
