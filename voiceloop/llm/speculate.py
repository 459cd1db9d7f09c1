"""Speculative decoding: a draft guesses a few tokens, one pass of the target verifies them all.

`Speculator` holds what one conversation needs of both models. What the tokens mean, which turns
they belong to and when a reply is over, it does not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import CHUNK, Decoder, feed
from voiceloop.llm.drafts import Draft, DraftLength, Guesses
from voiceloop.llm.sampling import Noise, Penalties, Sampling, Stream, warp
from voiceloop.llm.stopwatch import Stopwatch
from voiceloop.llm.verify import coupled, rejection

CARRIED = CHUNK // 2
"""Tokens of an earlier reply that fit into one pass together with the end of any prompt."""


@dataclass(frozen=True, slots=True)
class LlmCounters:
    """What a conversation has cost so far, in tokens, passes and milliseconds of the models."""

    drafted: int = 0
    """Guesses that were handed to the target."""
    tested: int = 0
    """Those among them that the target got to judge: all up to the first that failed."""
    accepted: int = 0
    accepted_by_position: tuple[int, ...] = ()
    """Accepted guesses that were the first of their round, the second, …"""
    target_passes: int = 0
    """Passes of the target that gave tokens: one for each prompt and one for each round."""
    prefilled: int = 0
    """Prompt tokens that the target has computed."""
    draft_prefilled: int = 0
    """Prompt tokens that the draft has computed."""
    reused: int = 0
    """Prompt tokens that were in the target's cache when a reply began."""
    carried: int = 0
    """Reply tokens that were kept when the prompt changed."""
    wasted: int = 0
    """Tokens that the target has computed for nothing: rejected guesses, and whatever of prompts
    and replies was rolled back."""
    draft_ms: float = 0.0
    """Milliseconds of the draft, prompts included."""
    target_ms: float = 0.0
    """Milliseconds of the target, prompts included."""
    wasted_ms: float = 0.0
    """Milliseconds of both that went into guesses that did not stand, and into what was rolled
    back. A pass takes about as long without its rejected rows: it counts for those that stay."""
    dropped_turns: int = 0
    """Exchanges that were forgotten because the context was full."""
    evictions: int = 0
    """Times the caches were given up to another conversation."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one pass of the target gave."""

    ids: tuple[int, ...]
    drafted: int = 0
    accepted: int = 0
    """Draft tokens among `ids`: all but the last at most."""


class Speculator:
    """Both models' caches over one sequence of ids, which the caller owns and passes in.

    The caches always hold rows of a beginning of that sequence; whoever cuts or changes the
    sequence calls `rollback` first. All generators here may be closed at any pause, which leaves
    the caches as they have to be for the sequence that was passed in.

    A reply depends on seed, turn and prompt alone; in rejection sampling also on the draft and on
    the numbers of guesses, so that it repeats only where those are fixed. This is up to rounding:
    where two tokens score as alike as that, the number of rows in a pass may decide between them.
    """

    def __init__(
        self,
        target: Decoder,
        draft: Draft | None,
        length: DraftLength,
        sampling: Sampling,
        capacity: int,
        stopwatch: Callable[[torch.device], Stopwatch] = Stopwatch,
    ) -> None:
        self.cache = KvCache(capacity)
        self.counts: Counter[str] = Counter()
        """What is counted in whole numbers, under the names of `LlmCounters`."""
        self._target = target
        self._draft = draft
        self._length = length
        self._sampling = sampling
        self._rejects = sampling.verification == "rejection" and sampling.temperature > 0
        self._noise = Noise(sampling.seed, target.vocab, target.device)
        self._penalties = Penalties(sampling, target.vocab, target.device)
        self._rows = torch.empty(capacity, dtype=torch.long, device=target.device)
        self._none = Guesses(self._rows[:0])
        self._next: tuple[int, Tensor] | None = None
        """Logits after as many ids as the number says."""
        self._watched: int | None = None
        """After how many ids the next pass is to leave them."""
        self._start = 0
        """Where the reply begins in the ids."""
        self._turn: int | None = None
        self._revision = 0
        """In rejection sampling, how often the turn's reply was begun: what a token was accepted
        by must not decide on it again."""
        self._laws: dict[int, Tensor] = {}
        """In rejection sampling, the law that each of the turn's first tokens came from."""
        self._draft_watch, self._target_watch = stopwatch(target.device), stopwatch(target.device)
        self._draft_ms = self._target_ms = self._wasted_ms = 0.0
        self._row_ms: list[float] = []
        """What each row of the target's cache took, its guess included."""
        self._accepted_by_position: Counter[int] = Counter()

    @property
    def seed(self) -> int | None:
        """Seed of the tokens that are drawn; None for greedy decoding, which draws none."""
        return self._sampling.seed if self._sampling.temperature else None

    @property
    def counters(self) -> LlmCounters:
        """What the conversation has cost so far."""
        positions = range(max(self._accepted_by_position, default=-1) + 1)
        return LlmCounters(
            **self.counts,
            accepted_by_position=tuple(self._accepted_by_position[i] for i in positions),
            draft_ms=self._draft_ms,
            target_ms=self._target_ms,
            wasted_ms=self._wasted_ms,
        )

    @torch.inference_mode()
    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Compute both models' rows for all of `ids`."""
        yield from self._extend(ids)
        yield from self.prefill_draft(ids)

    @torch.inference_mode()
    def prefill_draft(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the draft's rows for all of `ids`."""
        draft, watch = self._draft, self._draft_watch
        if draft is None or draft.length >= len(ids):
            return
        before = draft.length
        try:
            yield from watch.steps(draft.prefill(ids))
        finally:
            self.counts["draft_prefilled"] += draft.length - before
            self._draft_ms += watch.take()
        yield None

    @torch.inference_mode()
    def revise(
        self,
        ids: Sequence[int],
        old: Sequence[int],
        turn: int,
        position: int,
        watched: int | None = None,
    ) -> Generator[None, None, Round]:
        """Begin a reply to the prompt `ids`, keeping what still fits of `old`, an earlier reply.

        The target judges the old reply as if it had just been drafted: in one pass where it fits
        into a chunk, else in several up to the first token that fails. Without one, the target's
        first token comes straight from the prefill. The tokens are numbers `position`,
        `position + 1`, … of the turn's; after them there has to be room for one more.

        In coupled verification the result is what starting over gives. In rejection sampling it
        has the same law: each old token is tested against the law that it was drawn from, and only
        the first `CARRIED` of the turn are. `old` then has to be all that was decided, the token
        that ended the reply included; to leave one out for what it is would be a bias.

        `probability` can be asked after the first `watched` ids too, unless they were known before.
        """
        self.counts["reused"] += min(self.cache.length, len(ids))
        self._start = len(ids)
        offered = self._offered(old, turn, position)
        whole, stood, done = [*ids, *old], 0, False
        try:
            self._forget(len(ids) - 1)  # the last row's logits are needed
            # What is left of the prompt goes into one pass with what is offered.
            room = CHUNK - min(len(offered), CARRIED)
            yield from self._extend(ids[: max(0, len(ids) - room)])
            self._watched = watched
            while True:
                here = len(ids) + stood
                part = offered[stood : stood + CHUNK - (here - self.cache.length)]
                noise = None
                if not self._rejects:
                    noise = self._choices(turn, position + stood, len(part) + 1)
                accepted, tokens, _ = self._judge(whole[:here], part, noise, turn, position + stood)
                stood += accepted
                done = accepted < len(part) or stood == len(offered)
                if done:
                    break
                self._forget(len(ids) + stood - 1)
                yield None
        finally:
            self._watched = None
            if not done:
                self.rollback(len(ids))  # nobody learns of what stood so far
        self.counts["carried"] += stood
        return Round((*old[:stood], tokens[-1]), len(offered), stood)

    @torch.inference_mode()
    def round(
        self, ids: Sequence[int], turn: int, position: int, limit: int
    ) -> Generator[None, None, Round]:
        """Continue the reply by at least one token and at most `limit`.

        `ids` ends with the reply's last token, which is number `position - 1` of the turn's and is
        all that the target has not seen yet.
        """
        draft, watch = self._draft, self._draft_watch
        count = min(self._length.next(position), limit - 1) if draft is not None else 0
        noise = self._choices(turn, position, count + 1)
        guesses, accepted = self._none, 0
        try:
            if draft is not None and count > 0:
                self._penalties.count(ids, self._start)
                proposal = draft.propose(ids, count, noise, self._penalties)
                guesses = yield from watch.steps(proposal)
                noise = None if noise is None else noise[: len(guesses) + 1]
                yield None
            accepted, tokens, target_ms = self._judge(ids, guesses, noise, turn, position)
        finally:
            self.rollback(len(ids) + accepted)
            draft_ms = watch.take()
            each = draft_ms / max(1, len(guesses))
            self._draft_ms += draft_ms
            self._wasted_ms += draft_ms - accepted * each
        drafted = len(guesses)
        for index in range(accepted):
            self._row_ms[-1 - index] += each
            self._accepted_by_position[index] += 1
        self.counts["drafted"] += drafted
        self.counts["tested"] += min(accepted + 1, drafted)
        self.counts["accepted"] += accepted
        self._length.observe(drafted, accepted, draft_ms, target_ms)
        return Round(tuple(tokens), drafted, accepted)

    def probability(self, tokens: Sequence[int], length: int) -> float | None:
        """Probability that one of `tokens` follows the first `length` ids; None unless these were
        just computed."""
        if self._next is None or self._next[0] != length:
            return None
        return float(self._next[1].float().softmax(-1)[list(tokens)].sum())

    def rollback(self, length: int) -> None:
        """Forget everything from position `length` on."""
        self._forget(length)
        self._penalties.rollback(length)
        if self._draft is not None:
            self._draft.rollback(length)
        if self._next is not None and self._next[0] > length:
            self._next = None

    def release(self) -> None:
        """Free both caches."""
        self.cache.release()
        self._laws.clear()
        if self._draft is not None:
            self._draft.release()
        self._next = None

    def _extend(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the target's rows for all of `ids`, and pause if there was anything to do."""
        before, watch = self.cache.length, self._target_watch
        if before >= len(ids):
            return
        try:
            logits = yield from watch.steps(feed(self._target, self.cache, ids))
        finally:
            self.counts["prefilled"] += self.cache.length - before
            self._spend(before, watch.take())
        assert logits is not None
        self._next = len(ids), logits[-1].clone()  # the decoder may use its buffer again
        yield None

    def _judge(
        self, ids: Sequence[int], guesses: Guesses, noise: Tensor | None, turn: int, position: int
    ) -> tuple[int, list[int], float]:
        """One pass of the target over what it has not seen of `ids`, and over guesses after them.

        Returns how many guesses stand; the tokens that are decided, which are those and one more;
        and the milliseconds it took. Leaves the target's cache without the others.
        """
        before, watch = self.cache.length, self._target_watch
        unseen = torch.tensor(ids[before:])
        rows = self._rows[: len(unseen) + len(guesses)]
        rows[: len(unseen)] = unseen
        rows[len(unseen) :] = guesses.tokens
        self._penalties.count(ids, self._start)
        watched = self._watched or 0
        seen = before < watched <= len(ids)
        count = len(rows) - (watched - before) + 1 if seen else len(guesses) + 1
        with watch:
            logits = self._target.forward(rows, self.cache, count)
            if seen:
                self._next = watched, logits[0].clone()  # the decoder may use its buffer again
                logits = logits[-len(guesses) - 1 :]
            scores = warp(self._penalties.apply(logits, guesses.tokens), self._sampling)
            accepted, tokens = self._verdict(scores, guesses, noise, turn, position)
        self._forget(len(ids) + accepted)
        target_ms = watch.take()
        self._spend(before, target_ms)
        self.counts["target_passes"] += 1
        self.counts["prefilled"] += max(0, self._start - before)
        return accepted, tokens, target_ms

    def _verdict(
        self, scores: Tensor, guesses: Guesses, noise: Tensor | None, turn: int, position: int
    ) -> tuple[int, list[int]]:
        """How many of `guesses` stand, and the tokens that are decided.

        It waits for the device, and nothing else in a round does.
        """
        if not self._rejects:
            accepted, *tokens = torch.cat(coupled(guesses.tokens, scores, noise)).tolist()
            return accepted, tokens[: accepted + 1]
        p = scores.softmax(-1)
        u = self._noise.uniform(self._keys(Stream.ACCEPT, turn, position, len(guesses)))
        keys = self._keys(Stream.RESIDUAL, turn, position, len(guesses) + 1)

        def gumbel(n: Tensor) -> Tensor:
            return self._noise.gumbel(keys.index_select(0, n.to(keys.device)))

        verdict = rejection(guesses.tokens, p, guesses.laws, u, gumbel)
        accepted, *tokens = torch.cat(verdict).tolist()
        kept = p[: accepted + 1].clone()
        self._laws.update(zip(range(position, CARRIED), kept, strict=False))
        return accepted, tokens[: accepted + 1]

    def _offered(self, old: Sequence[int], turn: int, position: int) -> Guesses:
        """What is to be judged of `old`, with the laws it came from."""
        laws = None
        if self._rejects:
            self._revision = self._revision + 1 if turn == self._turn else 0
            if turn != self._turn:
                self._laws.clear()
            self._turn = turn
            places = range(position, position + len(old))
            known = [self._laws[at] for at in takewhile(self._laws.__contains__, places)]
            old, laws = old[: len(known)], torch.stack(known) if known else None
        return Guesses(torch.tensor(old, dtype=torch.long, device=self._target.device), laws)

    def _choices(self, turn: int, position: int, rows: int) -> Tensor | None:
        """Noise to choose the tokens from `position` on with: [rows, vocab]."""
        if self._sampling.temperature == 0:
            return None
        return self._noise.gumbel(self._keys(Stream.CHOICE, turn, position, rows))

    def _keys(self, stream: Stream, turn: int, position: int, rows: int) -> Tensor:
        return self._noise.keys(stream, turn, position, rows, self._revision)

    def _forget(self, length: int) -> None:
        """Roll the target's cache back, and count what was computed for nothing."""
        known = self.cache.length
        self.counts["wasted"] += max(0, known - length)
        self._wasted_ms += sum(self._row_ms[length:known])
        self.cache.rollback(length)

    def _spend(self, before: int, ms: float) -> None:
        """Share a pass's time out among the rows it gave, those from `before` on."""
        self._target_ms += ms
        if rows := self.cache.length - before:
            self._row_ms[before:] = [ms / rows] * rows
