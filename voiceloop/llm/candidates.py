"""Several replies to one prompt at once, of which the best one stays.

Each candidate chooses its tokens with the noise of a seed of its own, so it is what a conversation
with that seed would say. All of them are one tree behind the prompt: a pass gives the next token of
each, and those that have said the same so far share their rows. As long as all of them do, they
share a draft as well. What tokens mean and which candidate is the best, this module is told.
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
from voiceloop.llm.sampling import Penalties, exact, seeds, warp
from voiceloop.llm.scorers import Candidate, Scorer, best
from voiceloop.llm.stats import Stats, Step
from voiceloop.llm.stopwatch import Stopwatch
from voiceloop.llm.tree import ROOT, Tree, chain
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


Guess = tuple[Sequence[int], float]
"""Draft tokens, and the milliseconds they took."""


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

    def follows(self, nodes: _Nodes) -> bool:
        """Go on to the node of the last token, if there is one."""
        child = nodes.child(self.node, self.tokens[-1])
        self.node = self.node if child is None else child
        return child is not None

    @property
    def candidate(self) -> Candidate:
        said = self.said
        return Candidate(said.text, tuple(self.tokens), tuple(self.logprobs), said.complete)


class _Nodes:
    """The tokens that the target has computed behind the prompt, and which follows which."""

    def __init__(self, root: int) -> None:
        self.root = root
        """Rows of the prompt."""
        self.x = list[int]()
        self.tree = Tree(())

    def add(self, lines: Sequence[_Line]) -> None:
        """Add the last token of each of `lines`, which get to know their nodes: those that have
        said the same have one."""
        found = {(line.node, line.tokens[-1]): 0 for line in lines}
        for number, place in enumerate(found):
            found[place] = len(self.x) + number
        for line in lines:
            line.node = found[line.node, line.tokens[-1]]
        self._grow(*zip(*found, strict=True))

    def follow(self, tokens: Sequence[int]) -> None:
        """Add `tokens` that follow the last one, and one another."""
        last = len(self.x) - 1
        self._grow(range(last, last + len(tokens)), tokens)

    def cut(self, length: int) -> None:
        """Forget all but the first so many."""
        self.x, self.tree = self.x[:length], Tree(self.tree.parents[:length])

    def child(self, node: int, token: int) -> int | None:
        """Which node has that token and follows `node`."""
        return next((at for at in self.tree.children(node) if self.x[at] == token), None)

    def _grow(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        self.x, self.tree = [*self.x, *tokens], Tree((*self.tree.parents, *parents))


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
        draft: Callable[[Sequence[int]], Generator[None, None, Guess]],
    ) -> Generator[None, None, Step]:
        """Decode all candidates until each is done or has `limit` tokens, and keep the best.

        The cache holds the prompt, and `logits` [1, vocab] are those behind it; the first token is
        number `position` of the turn's. As long as all say the same, `draft` guesses what follows
        the tokens that it is given. Pauses before each pass. In the end the cache holds all but the
        last of the chosen tokens, and what follows them is drawn by their seed. Where it has no
        room for another token of each, they are judged as they are.
        """
        cache, nodes = self._cache, _Nodes(self._cache.length)
        own = self._verifier.sampling.seed
        lines = [_Line(seed, follow(), limit) for seed in seeds(own, how.count)]
        self._walk(lines, nodes, logits, position)
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
        line = lines[best([line.candidate for line in lines], how.score)]
        path = () if line.node == ROOT else nodes.tree.paths[line.node]
        unchosen, unchosen_ms = self._stats.chosen(nodes.root, path)
        cache.keep(nodes.root, path)
        self._verifier.follow(line.seed)
        return Step(tuple(line.tokens), unchosen=unchosen, unchosen_ms=unchosen_ms)

    def _pass(self, lines: Sequence[_Line], nodes: _Nodes, guess: Guess, position: int) -> None:
        """Compute what the cache has not seen of `nodes`, and what is guessed to follow the last of
        them; the rows of what was guessed wrongly are forgotten."""
        cache, start, sure = self._cache, self._cache.length, len(nodes.x)
        guessed, draft_ms = guess
        nodes.follow(guessed)
        with self._watch:
            new = torch.tensor(nodes.x[start - nodes.root :], device=self._target.device)
            logits = self._target.forward_tree(new, cache, nodes.tree, len(new))
            self._walk(lines, nodes, logits, position)
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

    def _walk(self, lines: Sequence[_Line], nodes: _Nodes, logits: Tensor, position: int) -> None:
        """Let each of `lines` go on by what it chooses behind its node, and behind those that it
        gets to so. The `logits` are those behind the last of the nodes, or behind the prompt."""
        first = len(nodes.x) - len(logits)
        scores, logprobs = self._scores(logits, nodes.tree, nodes.x), exact(logits).log_softmax(-1)
        while lines:
            rows = [line.node - first for line in lines]
            places = [position + len(line.tokens) for line in lines]
            chosen = self._verifier.choices(scores[rows], [line.seed for line in lines], places)
            told = logprobs[rows].gather(1, chosen.unsqueeze(1)).squeeze(1)
            tokens: list[int] = cast(Any, chosen).tolist()
            for line, token, logprob in zip(lines, tokens, cast(Any, told).tolist(), strict=True):
                line.add(token, logprob)
            lines = [line for line in lines if not line.done and line.follows(nodes)]

    def _scores(self, logits: Tensor, tree: Tree, x: Sequence[int]) -> Tensor:
        """What decides behind the last of the nodes `x`, from the `logits` there."""
        penalties = self._penalties
        nodes = torch.tensor(x, dtype=torch.long, device=logits.device)
        follows = followed(tree, logits.device)[-len(logits) :] if penalties.counting else None
        return warp(penalties.apply(logits, nodes, follows=follows), self._verifier.sampling)
