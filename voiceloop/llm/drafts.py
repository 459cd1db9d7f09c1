"""What guesses the target's next tokens, and how many guesses a round is worth.

A draft proposes; what it proposes never changes what is said, only how soon. This module does not
know the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import Decoder, feed
from voiceloop.llm.sampling import Sampling, choose


class Draft(Protocol):
    """Guesses for one conversation."""

    @property
    def length(self) -> int:
        """Tokens of the sequence that it has seen."""
        ...

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Get ready for a sequence that begins with `ids`."""
        ...

    def propose(self, ids: Sequence[int], count: int, noise: Tensor | None) -> Tensor:
        """Guess what follows `ids`: int64 [count], on the target's device.

        `noise` is the target's own for these positions, [count, vocab]; None if it is greedy.
        """
        ...

    def rollback(self, length: int) -> None:
        """Forget everything from position `length` on."""
        ...

    def release(self) -> None:
        """Forget everything."""
        ...


class ModelDraft:
    """A smaller model with the target's vocabulary, choosing with the target's noise."""

    def __init__(self, model: Decoder, sampling: Sampling, capacity: int) -> None:
        self.cache = KvCache(capacity)
        self._model = model
        self._sampling = sampling

    @property
    def length(self) -> int:
        """See `Draft.length`."""
        return self.cache.length

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """See `Draft.prefill`."""
        yield from feed(self._model, self.cache, ids)

    @torch.inference_mode()
    def propose(self, ids: Sequence[int], count: int, noise: Tensor | None) -> Tensor:
        """See `Draft.propose`. Nothing waits for the device between the guesses."""
        # After a round in which every guess stood, the last of them has not been seen either.
        unseen = torch.tensor(ids[self.cache.length :], device=self._model.device)
        guesses: list[Tensor] = []
        for index in range(count):
            logits = self._model.forward(unseen, self.cache, 1)
            own = None if noise is None else noise[index : index + 1]
            unseen = choose(logits, self._sampling, own)
            guesses.append(unseen)
        return torch.cat(guesses)

    def rollback(self, length: int) -> None:
        """See `Draft.rollback`."""
        self.cache.rollback(length)

    def release(self) -> None:
        """See `Draft.release`."""
        self.cache.release()


class DraftLength:
    """How many tokens to draft in a round.

    With acceptance a (each guess stands with this probability if the one before did), a round of k
    guesses yields (1 - a^(k+1)) / (1 - a) tokens (Leviathan et al. 2023, section 3.1) and costs one
    target pass, k draft steps and k more rows in the pass; the k that yields most for its cost is
    taken. Acceptance is measured on the conversation's own recent rounds.
    """

    MOST = 8
    FIRST_CLAUSE = 12
    """Tokens after which the reply's first clause may be complete."""
    SHORT = 3
    """Most guesses until then: the first tokens are wanted soon, not many at once."""
    MEMORY = 0.95
    """What remains of an observation after each later round."""

    def __init__(self, fixed: int | None, relative_cost: float) -> None:
        """`fixed` tokens a round, or as many as pay where it is None.

        `relative_cost` is that of one guess and of the row that tests it, next to a target pass.
        """
        self._fixed = fixed
        self._cost = relative_cost
        self._accepted, self._tested = 7.0, 10.0  # what a draft is taken for until it is known

    def next(self, position: int) -> int:
        """Tokens to draft for the round that begins with the reply's token `position`."""
        if self._fixed is not None:
            return self._fixed
        most = self.SHORT if position < self.FIRST_CLAUSE else self.MOST
        rate = min(self._accepted / self._tested, 0.99)

        def pays(k: int) -> float:
            return (1 - rate ** (k + 1)) / (1 - rate) / (1 + k * self._cost)

        return max(range(1, most + 1), key=pays)

    def observe(self, drafted: int, accepted: int) -> None:
        """Learn that `accepted` of `drafted` guesses stood."""
        self._accepted = self._accepted * self.MEMORY + accepted
        # The guess after the first that failed was not tested.
        self._tested = self._tested * self.MEMORY + min(accepted + 1, drafted)
