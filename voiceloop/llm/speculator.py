"""Speculative decoding: a draft guesses a few tokens, one pass of the target verifies them all.

`Speculator` holds what one conversation needs of both models. What the tokens mean, which turns
they belong to and when a reply is over, it does not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import Decoder, feed
from voiceloop.llm.drafts import Draft, DraftLength
from voiceloop.llm.sampling import Sampling, choose, gumbel
from voiceloop.llm.verify import coupled


@dataclass(frozen=True, slots=True)
class LlmCounters:
    """What a conversation has cost so far, in tokens and passes."""

    drafted: int = 0
    """Draft tokens that were proposed."""
    tested: int = 0
    """Those among them that the target got to judge: all up to the first that failed."""
    accepted: int = 0
    target_passes: int = 0
    """Passes of the target that gave tokens: one for each prompt and one for each round."""
    prefilled: int = 0
    """Prompt tokens that the target has computed."""
    draft_prefilled: int = 0
    """Prompt tokens that the draft has computed."""
    reused: int = 0
    """Prompt tokens that were in the target's cache when a reply began."""
    dropped_turns: int = 0
    """Exchanges that were forgotten because the context was full."""


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
    sequence calls `rollback` first.
    """

    def __init__(
        self,
        target: Decoder,
        draft: Draft | None,
        length: DraftLength,
        sampling: Sampling,
        capacity: int,
    ) -> None:
        self.cache = KvCache(capacity)
        self.counts: Counter[str] = Counter()
        self._target = target
        self._draft = draft
        self._length = length
        self._sampling = sampling
        self._next: tuple[int, Tensor] | None = None
        """Logits after as many ids as the number says."""

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Compute both models' rows for all of `ids`."""
        yield from self._extend(ids)
        yield None
        yield from self.prefill_draft(ids)

    def prefill_draft(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the draft's rows for all of `ids`."""
        if self._draft is not None:
            before = self._draft.length
            try:
                yield from self._draft.prefill(ids)
            finally:
                self.counts["draft_prefilled"] += max(0, self._draft.length - before)

    def first(self, ids: Sequence[int], turn: int, position: int) -> Generator[None, None, int]:
        """The token after the prompt `ids`, straight from its prefill; the draft is not asked."""
        self.counts["reused"] += min(self.cache.length, len(ids))
        self.cache.rollback(len(ids) - 1)  # the last row's logits are needed, known or not
        logits = yield from self._extend(ids)
        assert logits is not None
        self.counts["target_passes"] += 1
        return int(choose(logits, self._sampling, self._noise(turn, position, 1)))

    @torch.inference_mode()
    def round(self, ids: Sequence[int], turn: int, position: int, limit: int) -> Round:
        """Continue the reply by at least one token and at most `limit`.

        `ids` ends with the reply's last token, which is `position - 1` tokens into the reply and
        is all that the target has not seen yet.
        """
        count = min(self._length.next(position), limit - 1) if self._draft else 0
        noise = self._noise(turn, position, count + 1)
        rows = torch.tensor(ids[-1:], device=self._target.device)
        if self._draft and count:
            rows = torch.cat((rows, self._draft.propose(ids, count, noise)))
        logits = self._target.forward(rows, self.cache, count + 1)
        chosen = choose(logits, self._sampling, noise)
        # The round's only wait for the device.
        _, *both = torch.cat((rows, chosen)).tolist()
        drafted, choices = both[:count], both[count:]
        accepted = coupled(drafted, choices)
        self.rollback(len(ids) + accepted)
        self._observe(count, accepted)
        return Round(tuple(choices[: accepted + 1]), count, accepted)

    def probability(self, token: int, length: int) -> float | None:
        """Probability of `token` after the first `length` ids; None unless just computed."""
        if self._next is None or self._next[0] != length:
            return None
        return float(self._next[1].float().softmax(-1)[token])

    def rollback(self, length: int) -> None:
        """Forget everything from position `length` on."""
        self.cache.rollback(length)
        if self._draft is not None:
            self._draft.rollback(length)
        if self._next is not None and self._next[0] > length:
            self._next = None

    def release(self) -> None:
        """Free both caches."""
        self.cache.release()
        if self._draft is not None:
            self._draft.release()
        self._next = None

    def _extend(self, ids: Sequence[int]) -> Generator[None, None, Tensor | None]:
        before = self.cache.length
        try:
            logits = yield from feed(self._target, self.cache, ids)
        finally:
            self.counts["prefilled"] += max(0, self.cache.length - before)
        if logits is not None:
            self._next = len(ids), logits[-1]
        return logits

    def _noise(self, turn: int, position: int, rows: int) -> Tensor | None:
        target = self._target
        return gumbel(self._sampling, turn, position, rows, target.vocab, target.device)

    def _observe(self, drafted: int, accepted: int) -> None:
        self.counts["target_passes"] += 1
        if drafted:
            self._length.observe(drafted, accepted)
            self.counts["drafted"] += drafted
            self.counts["tested"] += min(accepted + 1, drafted)
            self.counts["accepted"] += accepted
