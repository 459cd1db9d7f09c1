"""Speculative decoding: a draft proposes a few tokens, one pass of the target verifies them all.

`Speculator.round` is Algorithm 1 of Leviathan et al. 2023 (arXiv 2211.17192):

    propose   x_1, …, x_k from the draft, one pass each
    verify    p_1, …, p_k+1 from the target, all in one pass
    settle    x_1, …, x_n are accepted, a token of the target's own follows, the rest is forgotten

The draft tokens may also form a tree, with several tokens for one position: one path is accepted.

In place of the part of Algorithm 1 that accepts, `verify.coupled` is another rule with the same
distribution. This module does not know what tokens mean or when a reply is over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.decode.captured import Captured, Rounds
from voiceloop.llm.draft.drafts import Draft
from voiceloop.llm.model.attention import followed
from voiceloop.llm.model.cache import KvCache, SharedOpening
from voiceloop.llm.model.decoder import CHUNK, Decoder, feed
from voiceloop.llm.model.timing import Stopwatch
from voiceloop.llm.rules.draftpolicy import DraftPolicy
from voiceloop.llm.rules.sampling import Penalties, Sampling, decide_call
from voiceloop.llm.rules.stats import Stats, Step
from voiceloop.llm.rules.verify import DraftTokens, Tree, Verifier, chain

CARRIED = CHUNK // 2
"""The number of tokens of an old reply for which the pass over the end of a prompt leaves room."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a reply, and the place of the reply in its turn."""

    ids: Sequence[int]
    """All ids before the reply."""
    turn: int
    """The number of the user's turn."""
    position: int = 0
    """Number of tokens that were decided in this turn before the reply. The reply's noise begins at
    this position."""
    watched: int | None = None
    """Number of ids after which the end probability (`Speculator.ending`) is wanted; None if it is
    not wanted."""
    earlier: Set[int] = frozenset()
    """The tokens of earlier replies and of the user's words, for the repetition penalty."""
    avoided: int | None = None
    """A token that the reply may not begin with."""
    calls: frozenset[int] = frozenset()
    """The tokens with which a call of a tool begins, if the reply may call one; otherwise empty."""


class Speculator:
    """Decides the tokens of one conversation. The caller owns the ids and passes them in.

    Its attributes are the parts of a round. What several conversations share comes from outside.

    The caches of both models always hold rows of a prefix of these ids. So the caller calls
    `rollback` before it cuts or changes the ids. All generators pause between passes of a model.
    They may be closed at any pause, and leave the caches valid for the ids that were passed in.

    The same seed, turn and prompt give the same reply. Rounding may break this rule: if two tokens
    have nearly equal scores, the number of rows in a pass may decide between them.
    """

    def __init__(
        self,
        target: Decoder,
        draft: Draft | None,
        policy: DraftPolicy,
        sampling: Sampling,
        cache: KvCache,
        stopwatch: Callable[[torch.device], Stopwatch] = Stopwatch,
        captured: Captured | None = None,
        ends: Sequence[int] = (),
        opening: SharedOpening | None = None,
    ) -> None:
        """`cache` is the target's cache and is empty. Several conversations may share `policy`,
        `captured` and `opening`. `ending` adds up the probabilities of the tokens `ends`. Rounds
        are replayed from `captured`, if given, while the conversation's caches have slots."""
        self.cache = cache
        self.stats = Stats()
        self._target, self._draft, self._policy = target, draft, policy
        self._penalties = Penalties(sampling, target.vocab, target.device)
        self._verifier = Verifier(sampling, target.vocab, target.device)
        self._rounds = captured and Rounds(
            captured, self.cache, draft, self._verifier, self._penalties
        )
        self._opening = opening or SharedOpening()
        self._prompt = Prompt((), 0)
        """The prompt of the reply."""
        self._start = 0
        """The number of ids before the reply."""
        self._ends = list(ends)
        self._ending: tuple[int, float] | None = None
        """The number of ids after which `ending` is known, and its value."""
        self._draft_watch, self._target_watch = stopwatch(target.device), stopwatch(target.device)

    @cached_property
    def _rows(self) -> Tensor:
        """The buffer for the tokens of a pass. It is made at its first use, because that is on the
        model's own thread and stream. The conversation is made on another thread."""
        return torch.empty(self.cache.capacity, dtype=torch.long, device=self._target.device)

    @torch.inference_mode()
    def round(self, ids: Sequence[int], limit: int) -> Generator[None, None, Step]:
        """Continue the reply by at least one token and at most `limit`.

        `ids` ends with the reply's last token, the only one that the target has not seen yet.
        """
        position = self._position(ids)
        tree = chain(0) if self._draft is None else self._policy.next(position).cut(limit - 1)
        if (rounds := self._rounds) is not None and rounds.ready(ids):
            steps = self._replayed(rounds, ids, len(tree), position)
        else:
            self.stats.total.without_slot += rounds is not None and rounds.lacks_slot()
            steps = self._round(ids, tree, position)
        step = Step(start=self.cache.length)  # is counted if the round is closed or fails
        try:
            step = yield from steps
        finally:
            self.rollback(len(ids) + step.accepted)
            draft_ms, target_ms = self._draft_watch.take(), self._target_watch.take()
            step = replace(step, draft_ms=draft_ms, target_ms=target_ms)
            self.stats.round(step)
        self._policy.observe(step.tree, step.path, step.draft_ms, step.target_ms)
        return step

    def _round(self, ids: Sequence[int], tree: Tree, position: int) -> Generator[None, None, Step]:
        """Run Algorithm 1 of Leviathan et al. 2023, with the names used there; the draft tokens x
        may form a tree.

        `position` is the index, among the turn's tokens, of the token after `ids`.
        """
        x, noise = DraftTokens(self._rows[:0]), None
        # Propose: x_1, …, x_k from the draft, one pass each.
        if (draft := self._draft) is not None and tree:
            if draft.draws:
                noise = self._verifier.noise(position, tree.depth + 1)
            x = yield from self._proposed(draft, ids, tree, noise)
            if len(x):
                yield None
        # Verify: p_1, …, p_k+1 from the target, all in one pass.
        # Settle: x_1, …, x_n are accepted, and a token of the target's own follows.
        with self._target_watch:
            return self._settled(ids, x, noise)

    def _proposed(
        self, draft: Draft, ids: Sequence[int], tree: Tree, noise: Tensor | None
    ) -> Generator[None, None, DraftTokens]:
        """Let the draft read the ids that it has not read, and propose tokens after `ids`."""
        yield from self._catch_up(draft, ids)
        self._penalties.count(ids, self._start)
        proposal = draft.propose(ids, tree, noise, self._penalties)
        return (yield from self._draft_watch.steps(proposal))

    def _catch_up(self, draft: Draft, ids: Sequence[int]) -> Steps[None]:
        """Let the draft read the ids that it has not read, if they are too many for
        `Draft.propose`. These are tokens of rounds in which it proposed nothing."""
        if draft.length < len(ids) - draft.lag:
            yield from self.prefill_draft(ids[:-1])

    def _replayed(
        self, rounds: Rounds, ids: Sequence[int], k: int, position: int
    ) -> Generator[None, None, Step]:
        """Run the round as captured graphs, one right after the other. `k` is the largest number of
        draft tokens."""
        if k > 0 and self._draft is not None:
            yield from self._catch_up(self._draft, ids)
        k = yield from rounds.begin(ids, k, self._start, position)
        with self._draft_watch:
            rounds.draft(k)
        with self._target_watch:
            rounds.verify(k)
        n, tokens = rounds.settle()
        self._forget(len(ids) + n)
        return Step(tuple(tokens), chain(k), range(n), start=len(ids) - 1, rows=n + 1)

    @torch.inference_mode()
    def revise(self, prompt: Prompt, old: Sequence[int]) -> Generator[None, None, Step]:
        """Begin a reply to `prompt`, and keep the beginning of `old`, an earlier reply, that still
        fits.

        The target verifies the old reply like draft tokens: in one pass if it fits into a chunk,
        otherwise in several passes, up to the first token that is rejected. Without an old reply,
        the pass over the end of the prompt gives the first token. The cache must have room for the
        old tokens and one more. The rows and the time of the returned step are those of the last
        pass.

        The result is the same as without the old reply.
        """
        ids = prompt.ids
        whole, kept, done, step = [*ids, *old], 0, False, Step()
        try:
            offered = yield from self._begin(prompt, old)
            while not done:
                known = whole[: len(ids) + kept]
                left = self._target.chunk - (len(known) - self.cache.length)
                x = offered[kept : kept + max(0, left)]
                step = self._verified(known, x)
                kept += step.accepted
                done = step.accepted < len(x) or kept == len(offered)
                if not done:
                    self._forget(len(ids) + kept - 1)
                    yield None
        finally:
            if not done:
                self.rollback(len(ids))  # the caller does not learn what was accepted so far
        self.stats.total.carried += kept
        tokens = (*old[:kept], step.tokens[-1])
        return replace(step, tokens=tokens, tree=chain(len(offered)), path=range(kept))

    @torch.inference_mode()
    def offer(self, ids: Sequence[int], draft: Sequence[int]) -> Step:
        """Continue the reply by the `draft` tokens that are accepted, and by one more token.

        This is a round without pauses, with the caller's own draft tokens.
        """
        return self._verified(ids, DraftTokens(torch.tensor(draft, device=self._target.device)))

    @torch.inference_mode()
    def read(self, prompt: Prompt) -> Generator[None, None, Tensor]:
        """Read `prompt`, and return the logits after it, [1, vocab]. The caller decides the first
        tokens of the reply. In the logits, tokens that may not begin the reply are -inf."""
        nothing = yield from self._begin(prompt, ())
        start, watch = self.cache.length, self._target_watch
        with watch:
            logits = self._logits(prompt.ids, nothing)
        rows = self.cache.length - start
        step = Step(start=start, rows=rows, prompt=rows, target_ms=watch.take())
        self.stats.target_pass(step)
        self.stats.total.target_passes += 1  # it gives the first tokens
        return self._beginning(logits, logits[0])

    @torch.inference_mode()
    def propose(
        self, ids: Sequence[int], limit: int
    ) -> Generator[None, None, tuple[list[int], float]]:
        """Return at most `limit` draft tokens after `ids`, and the milliseconds that proposing them
        took.

        The caller verifies them. This waits for the device.
        """
        position, start, draft = self._position(ids), self._start, self._draft
        depth = 0 if draft is None else self._policy.next(position).cut(limit).depth
        if draft is None or depth == 0:
            return [], 0.0
        noise = self._verifier.noise(position, depth) if draft.draws else None
        x = yield from self._proposed(draft, ids, chain(depth), noise)
        tokens: list[int] = cast(Any, x.tokens).tolist()
        draft.rollback(len(ids))
        self._penalties.rollback(start)
        self._penalties.count(ids[:start], start)
        return tokens, self._draft_watch.take()

    def follow(self, seed: int) -> None:
        """Draw the rest of the reply with the noise of `seed`. The caller has decided the first
        tokens."""
        self._verifier.follow(seed)
        if self._draft is not None:
            self._draft.rollback(self._start)  # it may have read tokens of another reply

    @torch.inference_mode()
    def open(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the rows of the opening `ids` in the target's cache, or copy them."""
        if self.cache.length < len(ids):
            if self._opening.lend(ids, self.cache):
                self.stats.copied(len(ids))
                if self._rounds is not None:
                    self._rounds.rollback(0)
            yield from self._extend(ids)
            self._opening.keep(ids, self.cache)

    @torch.inference_mode()
    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the rows of all `ids` in both caches."""
        yield from self._extend(ids)
        yield from self.prefill_draft(ids)

    @torch.inference_mode()
    def prefill_draft(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the rows of all `ids` in the draft's cache."""
        draft, watch = self._draft, self._draft_watch
        if draft is None or draft.length >= len(ids):
            return
        before = draft.length
        try:
            yield from watch.steps(draft.prefill(ids))
        finally:
            self.stats.draft_prefill(draft.length - before, watch.take())
        yield None

    def ending(self, length: int) -> float | None:
        """Return the probability that one of the `ends` follows the first `length` ids. Only the
        probability that was computed last is kept. None if that was for another `length`."""
        return self._ending[1] if self._ending is not None and self._ending[0] == length else None

    def rollback(self, length: int) -> None:
        """Remove the rows from position `length` on from both caches, and all other data about the
        ids from there on."""
        self._forget(length)
        self._penalties.rollback(length)
        if self._rounds is not None:
            self._rounds.rollback(length)
        if self._draft is not None:
            self._draft.rollback(length)
        if self._ending is not None and self._ending[0] > length:
            self._ending = None

    def release(self) -> None:
        """Free the memory of both caches."""
        self.cache.release()
        if self._draft is not None:
            self._draft.release()
        self._ending = None

    @property
    def seed(self) -> int | None:
        """The seed of the noise; None in greedy decoding, which uses none."""
        sampling = self._verifier.sampling
        return sampling.seed if sampling.temperature else None

    def _begin(self, prompt: Prompt, old: Sequence[int]) -> Generator[None, None, DraftTokens]:
        """Begin a reply to `prompt`. Return the `old` tokens as draft tokens.

        The end of the prompt is left for the pass that verifies the old tokens. All of the prompt
        before that is read here. If the end probability is wanted, a pass ends where it belongs:
        that takes no longer than the logits of all later rows.
        """
        ids = prompt.ids
        self.stats.total.reused += min(self.cache.length, len(ids))
        self._prompt, self._start = prompt, len(ids)
        self._penalties.begin(prompt.earlier)
        self._verifier.begin(prompt.turn)
        offered = DraftTokens(torch.tensor(old, dtype=torch.long, device=self._target.device))
        if prompt.watched is not None and prompt.watched < len(ids):
            yield from self._extend(ids[: prompt.watched])
        self._forget(len(ids) - 1)  # the last row's logits are needed
        room = max(1, self._target.chunk - min(len(offered), CARRIED))
        yield from self._extend(ids[: max(0, len(ids) - room)])
        return offered

    def _beginning(self, scores: Tensor, logits: Tensor) -> Tensor:
        """Return `scores` [rows, vocab] with -inf in the first row for each token that may not
        begin the reply. `logits` [vocab] are the target's logits of that row, without penalties.
        They give the end probability if it is wanted there."""
        prompt, first = self._prompt, scores[:1]
        if prompt.watched == self._start:
            self._record_ending(self._start, logits)
        if not prompt.calls and prompt.avoided is None:
            return scores
        if prompt.calls:
            first = decide_call(first, logits, prompt.calls)
        if prompt.avoided is not None:
            first = first.clone()
            first[0, prompt.avoided] = -torch.inf
        return torch.cat((first, scores[1:]))

    def _verified(self, ids: Sequence[int], x: DraftTokens) -> Step:
        """Verify `x` after `ids` in one pass. `x` does not come from the draft."""
        with self._target_watch:
            step = self._settled(ids, x, None)
        step = replace(step, target_ms=self._target_watch.take())
        self.stats.target_pass(step)
        return step

    def _settled(self, ids: Sequence[int], x: DraftTokens, noise: Tensor | None) -> Step:
        """Compute the pass over the ids that the target has not seen and over the draft tokens `x`,
        and decide tokens by it. The rows of rejected tokens are removed from the target's cache.

        `noise` is the noise with which the draft chose the tokens; None if it used none.
        """
        start, known = self.cache.length, len(ids)
        self._penalties.count(ids, self._start)
        if noise is None:
            noise = self._verifier.noise(self._position(ids), x.tree.depth + 1)
        logits = self._logits(ids, x)
        follows = None if x.branches is None else followed(x.branches, logits.device)
        scores = self._penalties.apply(logits, x.tokens, follows=follows)
        if known == self._start:
            scores = self._beginning(scores, logits[0])
        path, tokens = self._verifier.verify(scores, x, noise)
        end = known + len(path)
        self.stats.rolled_back(end, self.cache.length)
        self.cache.keep(known, path)
        prompt = max(0, self._start - start)
        return Step(tuple(tokens), x.tree, path, start, rows=end - start, prompt=prompt)

    def _extend(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the rows of `ids` that the target's cache lacks. If there are any, pause after
        each pass."""
        start, watch = self.cache.length, self._target_watch
        if start >= len(ids):
            return
        try:
            logits = yield from watch.steps(feed(self._target, self.cache, ids))
        finally:
            rows = self.cache.length - start
            self.stats.target_pass(
                Step(start=start, rows=rows, prompt=rows, target_ms=watch.take())
            )
        assert logits is not None
        self._record_ending(len(ids), logits[-1])
        yield None

    def _logits(self, ids: Sequence[int], x: DraftTokens) -> Tensor:
        """Compute the ids that the target has not seen and the draft tokens `x` after them. Return
        the logits after the last id and after each draft token, [k + 1, vocab]."""
        unseen = torch.tensor(ids[self.cache.length :])
        tokens = self._rows[: len(unseen) + len(x)]
        tokens[: len(unseen)] = unseen
        tokens[len(unseen) :] = x.tokens
        if x.branches is None:
            return self._target.forward(tokens, self.cache, len(x) + 1)
        return self._target.forward_tree(tokens, self.cache, x.branches, len(x) + 1)

    def _position(self, ids: Sequence[int]) -> int:
        """Return the index, among the turn's tokens, of the token after `ids`."""
        return self._prompt.position + len(ids) - self._start

    def _record_ending(self, length: int, logits: Tensor) -> None:
        """Compute the value of `ending(length)` from `logits` [vocab]. Doing it now means that
        reading it never waits for the device."""
        if self._ends:
            self._ending = length, float(logits.float().softmax(-1)[self._ends].sum())

    def _forget(self, length: int) -> None:
        """Remove the rows from `length` on from the target's cache."""
        self.stats.rolled_back(length, self.cache.length)
        self.cache.rollback(length)
