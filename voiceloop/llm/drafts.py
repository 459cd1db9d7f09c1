"""What guesses the target's next tokens, and how many guesses a round is worth.

A draft proposes; what it proposes never changes the law of what is said, only how soon it is said.
This module knows neither the target nor the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import Decoder, feed
from voiceloop.llm.sampling import Penalties, Sampling, choose, warp


@dataclass(frozen=True, slots=True)
class Guesses:
    """Tokens to be tested, in order; good until the draft is asked again."""

    tokens: Tensor
    """int64 [guesses], on the target's device."""
    laws: Tensor | None = None
    """The law each was drawn from, [guesses, vocab]; None if none was drawn, or nobody asks."""

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, part: slice) -> Guesses:
        return Guesses(self.tokens[part], None if self.laws is None else self.laws[part])


class Draft(Protocol):
    """Guesses for one conversation."""

    @property
    def length(self) -> int:
        """Tokens of the sequence that it has seen."""
        ...

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Get ready for a sequence that begins with `ids`."""
        ...

    def propose(
        self, ids: Sequence[int], count: int, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, Guesses]:
        """Guess at most `count` tokens that follow `ids`; pauses between forward passes.

        `noise` is Gumbel noise for these positions, [count or more, vocab], to choose with: the
        target's own in coupled verification; None if the target is greedy. `penalties` have
        counted `ids`. Whoever closes this at a pause rolls back to where the ids end.
        """
        ...

    def rollback(self, length: int) -> None:
        """Forget everything from position `length` on."""
        ...

    def release(self) -> None:
        """Forget everything."""
        ...


class ModelDraft:
    """A smaller model with the target's vocabulary, which warps and chooses as the target does."""

    def __init__(
        self,
        model: Decoder,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
    ) -> None:
        """`ends` are the tokens that end a reply: nothing is guessed after one of them.

        The one that ends it is handed over like any other guess, so this changes no law.
        """
        self.cache = KvCache(capacity)
        # Elsewhere it would take a wait for the device to know that a guess ends the reply.
        self._ends = ends if model.device.type == "cpu" else frozenset[int]()
        self._model = model
        self._sampling = sampling
        self._drawn = sampling.verification == "rejection" and sampling.temperature > 0
        self._tokens = torch.empty(capacity, dtype=torch.long, device=model.device)
        self._laws: Tensor | None = None

    @property
    def length(self) -> int:
        """See `Draft.length`."""
        return self.cache.length

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """See `Draft.prefill`."""
        yield from feed(self._model, self.cache, ids)

    @torch.inference_mode()
    def propose(
        self, ids: Sequence[int], count: int, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, Guesses]:
        """See `Draft.propose`. Nothing waits for the device between the guesses."""
        self.rollback(len(ids) - 1)  # a round that was cancelled has seen all of them
        # After a round in which every guess stood, the last of them has not been seen either; both
        # go in one pass. More is there only after rounds without guesses.
        if self.cache.length < len(ids) - 2:
            yield from self.prefill(ids[:-1])
            yield None
        unseen = torch.tensor(ids[self.cache.length :], device=self._model.device)
        guessed = 0
        while guessed < count:
            logits = self._model.forward(unseen, self.cache, 1)
            scores = warp(penalties.apply(logits, self._tokens[:guessed]), self._sampling)
            if self._drawn:
                torch.softmax(scores, -1, out=self._law(guessed, count, scores))
            unseen = self._tokens[guessed : guessed + 1]
            unseen.copy_(choose(scores, None if noise is None else noise[guessed]))
            guessed += 1
            if self._ends and int(unseen) in self._ends:
                break
            if guessed < count:
                yield None
        laws = None if self._laws is None else self._laws[:guessed]
        return Guesses(self._tokens[:guessed], laws)

    def rollback(self, length: int) -> None:
        """See `Draft.rollback`."""
        self.cache.rollback(length)

    def release(self) -> None:
        """See `Draft.release`."""
        self.cache.release()

    def _law(self, index: int, count: int, like: Tensor) -> Tensor:
        """Where the law of a round's guess `index` is kept, [1, vocab]."""
        if self._laws is None or len(self._laws) < count:
            self._laws = like.new_empty(count, like.shape[-1])
        return self._laws[index : index + 1]


class NgramDraft:
    """Prompt lookup: what followed the last few tokens when they were last said (Saxena 2023).

    The longest n-gram that occurred before decides, its latest occurrence first. Needs no model.
    """

    LONGEST, SHORTEST = 4, 2
    """Tokens of the n-grams that are looked up."""

    def __init__(self, device: torch.device) -> None:
        """`device` is the target's."""
        self._device = device
        self._ids: list[int] = []
        self._ends: dict[tuple[int, ...], list[int]] = {}
        """Where each n-gram ended that something followed, in order."""

    @property
    def length(self) -> int:
        """See `Draft.length`."""
        return len(self._ids)

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """See `Draft.prefill`."""
        self._index(ids)
        yield None

    def propose(
        self, ids: Sequence[int], count: int, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, Guesses]:
        """See `Draft.propose`. It guesses nothing where nothing is repeated."""
        self._index(ids)
        yield from ()
        start = next(filter(None, map(self._latest, range(self.LONGEST, self.SHORTEST - 1, -1))), 0)
        # What runs into the end of the sequence is repeated: the guesses follow their own pattern.
        period = len(ids) - start
        copied = [self._ids[start + i % period] for i in range(count)] if start else []
        return Guesses(torch.tensor(copied, dtype=torch.long, device=self._device))

    def rollback(self, length: int) -> None:
        """See `Draft.rollback`."""
        while len(self._ids) > length:
            for gram in self._grams():
                self._ends[gram].pop()  # the latest is the one that this token followed
                if not self._ends[gram]:
                    del self._ends[gram]
            self._ids.pop()

    def release(self) -> None:
        """See `Draft.release`."""
        self._ids.clear()
        self._ends.clear()

    def _index(self, ids: Sequence[int]) -> None:
        for token in ids[len(self._ids) :]:
            self._ids.append(token)
            for gram in self._grams():
                self._ends.setdefault(gram, []).append(len(self._ids) - 1)

    def _grams(self) -> list[tuple[int, ...]]:
        """The n-grams that the last token follows."""
        end = len(self._ids) - 1
        sizes = range(self.SHORTEST, min(self.LONGEST, end) + 1)
        return [tuple(self._ids[end - size : end]) for size in sizes]

    def _latest(self, size: int) -> int:
        """Where the last `size` tokens ended when they occurred before; 0 if they never did."""
        ends = self._ends.get(tuple(self._ids[-size:]))
        return ends[-1] if ends else 0


class DraftLength:
    """How many tokens to draft in a round: as many as yield most tokens for their time.

    A round of k guesses yields 1 + a_1 + a_1 a_2 + … + a_1 … a_k tokens, where a_i is the chance
    that guess i stands if those before it did (Leviathan et al. 2023, section 3.1, for one a). It
    takes k steps of the draft and a pass of the target over k + 1 rows. Acceptances and times are
    those of recent rounds, which are passed in; nothing depends on the tokens that were guessed or
    will be, or the law of what is said would change.
    """

    MOST = 16
    FIRST_CLAUSE = 8
    """Tokens of a reply's first clause, about: until then no guess reaches further, for these
    tokens are wanted soon, not many at once."""
    PROBE = 20
    """Rounds without a guess after which one is tried, to see whether it pays by now; more if a
    guess takes longer than a round without one, so that this costs a twentieth at most."""
    RECHECK = 200
    """Rounds with guesses after which one goes without, to see what that costs by now."""
    MEMORY = 0.95
    """What remains of an observed acceptance after each later round."""
    RECENT = 5
    """Measured times of a kind that count; their median is taken, since some are interrupted."""
    POOLED = 4.0
    """Tests of a guess i that the acceptance of all guesses is worth, for want of its own."""

    def __init__(self, fixed: int | None, step_cost: float, row_cost: float = 0.0) -> None:
        """`fixed` tokens a round, or as many as pay where it is None.

        Costs are relative to a target pass over one row, and count until they are measured: that
        of a draft step, and that of each further row of a target pass.
        """
        self._fixed = fixed
        self._step_cost, self._row_cost = step_cost, row_cost
        self._step_ms: deque[float] = deque(maxlen=self.RECENT)
        self._pass_ms: dict[int, deque[float]] = {}
        """By number of rows."""
        self._typical_ms: dict[int, float] = {}
        """Their medians."""
        self._accepted, self._tested = 7.0, 10.0  # what a draft is taken for until it is known
        self._accepted_at, self._tested_at = [0.0] * self.MOST, [0.0] * self.MOST
        self._rounds_without = 0
        self._rounds_with = self.RECHECK  # since a round without guesses: none was seen yet

    def next(self, position: int) -> int:
        """Tokens to draft for the round that begins with the reply's token `position`."""
        if self._fixed is not None:
            return self._fixed
        left = self.FIRST_CLAUSE - position
        if self._rounds_with >= self.RECHECK and left <= 0:
            return 0
        most = left if left > 0 else self.MOST
        step = median(self._step_ms) if self._step_ms else self._step_cost * self._pass(1)
        times = [k * step + self._pass(k + 1) for k in range(most + 1)]
        rates = [tokens / ms for tokens, ms in zip(self._tokens(most), times, strict=True)]
        plain, guess = times[0], times[1] - times[0]
        probing = self._rounds_without * plain >= self.PROBE * max(plain, guess)
        return rates.index(max(rates)) or int(probing)

    def observe(self, drafted: int, accepted: int, draft_ms: float, target_ms: float) -> None:
        """Learn from a round: `accepted` of `drafted` guesses stood, and what it took."""
        rows = drafted + 1
        self._pass_ms.setdefault(rows, deque(maxlen=self.RECENT)).append(target_ms)
        self._typical_ms[rows] = median(self._pass_ms[rows])
        if drafted:
            self._step_ms.append(draft_ms / drafted)
            self._rounds_without, self._rounds_with = 0, self._rounds_with + 1
        else:
            self._rounds_without, self._rounds_with = self._rounds_without + 1, 0
        if drafted or self._tested > 1:  # or rounds without guesses would leave nothing at all
            self._fade()
        tested = min(accepted + 1, drafted)  # what follows the first that failed was not tested
        self._accepted += accepted
        self._tested += tested
        for index in range(min(tested, self.MOST)):
            self._tested_at[index] += 1
            self._accepted_at[index] += index < accepted

    def _fade(self) -> None:
        self._accepted *= self.MEMORY
        self._tested *= self.MEMORY
        self._accepted_at = [count * self.MEMORY for count in self._accepted_at]
        self._tested_at = [count * self.MEMORY for count in self._tested_at]

    def _tokens(self, most: int) -> list[float]:
        """Expected tokens of rounds of 0, 1, …, `most` guesses."""
        pooled = self.POOLED * self._accepted / self._tested
        totals, stands = [1.0], 1.0
        for index in range(most):
            stands *= (self._accepted_at[index] + pooled) / (self._tested_at[index] + self.POOLED)
            totals.append(totals[-1] + stands)
        return totals

    def _pass(self, rows: int) -> float:
        """Expected time of a target pass, from those over the nearest numbers of rows."""
        if not self._typical_ms:
            return self._relative(rows)
        fewer = max((seen for seen in self._typical_ms if seen <= rows), default=0)
        more = min((seen for seen in self._typical_ms if seen >= rows), default=0)
        if fewer and more:
            low, high = self._typical_ms[fewer], self._typical_ms[more]
            return low + (high - low) * (rows - fewer) / max(1, more - fewer)
        nearest = fewer or more
        return self._typical_ms[nearest] * self._relative(rows) / self._relative(nearest)

    def _relative(self, rows: int) -> float:
        """What a pass over so many rows is said to take next to one over a single row."""
        return 1 + (rows - 1) * self._row_cost
