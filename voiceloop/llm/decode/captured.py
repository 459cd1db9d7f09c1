"""Rounds of speculative decoding as captured graphs, with fixed shapes and addresses.

`Speculator.round` launches each operation by itself, with shapes that grow with the sequence. Here
the same round is two graphs for each number of draft tokens: one for the passes of the draft, one
for the pass of the target and the verification. The same graphs serve all conversations whose
caches have slots. What changes from round to round goes to the device in one copy: the slots, the
length of the sequence, its last two ids, and the keys of the random numbers. The result comes back
in one copy, and the host waits only for that copy.

On a GPU most of the time of a small pass goes into launching its hundreds of kernels one by one. A
captured graph is launched in one call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from time import perf_counter  # noqa: TID251 -- engines do not run on the loop, whose clock it is
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from voiceloop.llm.draft.drafts import Draft, ModelDraft
from voiceloop.llm.model.attention import BUCKETS, SlotPosition
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.rules.sampling import (
    Noise,
    Penalties,
    Sampling,
    TokenCounts,
    choose,
    counted,
    warp,
)
from voiceloop.llm.rules.verify import Verifier, chain, coupled

logger = logging.getLogger(__name__)

LENGTHS = (0, 1, 2, 3, 4, 6, 8)
"""The numbers of draft tokens that a captured round may have. Each number needs separate graphs."""
MOST = LENGTHS[-1]
USUAL = (0, 4)
"""The numbers of draft tokens with which nearly every reply begins. Their graphs are captured at
the start."""


class Graph(Protocol):
    """Work that can be replayed."""

    def replay(self) -> None:
        """Run the work again, on the present values at the addresses that it reads."""
        ...


Capture = Callable[[Callable[[], None]], Graph]
"""The type of a function that makes a graph of a piece of work. The work must have run once before.
It must be the same each time, read and write tensors at fixed addresses, and read nothing back from
the device."""


class Plainly:
    """A graph that runs its work again instead of replaying captured work."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def replay(self) -> None:
        self._work()


class CudaGraphs:
    """Captures work as CUDA graphs, on the stream and thread of the caller.

    All graphs share one pool of memory. This is safe because they are replayed one after the other,
    and a graph keeps nothing in the pool after its replay.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._warned = False

    def __call__(self, work: Callable[[], None]) -> Graph:
        """Capture `work`. If it cannot be captured, it runs uncaptured, and that is logged once."""
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        own = (
            None if stream == torch.cuda.default_stream() else stream
        )  # the default stream cannot capture
        # Capturing empties the cache as well, and that would make `taken` negative.
        torch.cuda.empty_cache()
        began, held = perf_counter(), torch.cuda.memory_reserved()
        try:
            # Models on other threads may go on: only calls of this thread are checked.
            with torch.cuda.graph(
                graph, pool=self._pool, stream=own, capture_error_mode="thread_local"
            ):
                work()
        except RuntimeError as error:
            if not self._warned:
                logger.warning("rounds are not captured: %s", str(error).partition("\n")[0])
            self._warned = True
            return Plainly(work)
        taken = torch.cuda.memory_reserved() - held
        logger.info("captured in %.2f s, %.1f MB", perf_counter() - began, taken / 1e6)
        return graph


@dataclass(frozen=True, slots=True)
class Round:
    """The inputs of a round."""

    slots: tuple[int, int]
    """The slot of the target's cache and the slot of the draft's cache. The second is not used if
    the draft is not a model."""
    length: int
    """The number of ids before the round's draft tokens."""
    start: int
    """The position of the reply's first token."""
    recent: tuple[int, int]
    """The last two ids of the sequence."""
    keys: list[int]
    """The keys of the random numbers for the next `MOST` + 1 tokens."""


class Inputs:
    """A round's inputs on the device, at fixed addresses."""

    def __init__(self, device: torch.device) -> None:
        self._on_host = torch.zeros(7 + MOST, dtype=torch.long)
        if device.type == "cuda":
            self._on_host = self._on_host.pin_memory()
        self._numbers = numbers = torch.zeros_like(self._on_host, device=device)
        self.target_slot, self.draft_slot, self.length, self.start = numbers[:4].split(1)
        self.recent = numbers[4:6]
        self.keys = numbers[6:]

    def load(self, round_: Round) -> None:
        """Copy the inputs of a round to the device. The device must have finished all work that
        reads the inputs of an earlier round."""
        values = (*round_.slots, round_.length, round_.start, *round_.recent, *round_.keys)
        self._on_host.copy_(torch.tensor(values))
        self._numbers.copy_(self._on_host, non_blocking=True)


@dataclass(frozen=True, slots=True)
class PlacedModel:
    """A model and the slots of its caches."""

    decoder: Decoder
    slots: Slots


class FixedRound:
    """The operations of a round on the device, with fixed shapes and addresses.

    They read their inputs from `inputs` and from the other tensors of this object. `draft` and
    `verify` give the same results as the same parts of `Speculator.round`, and read nothing back
    from the device.
    """

    def __init__(self, target: PlacedModel, draft: PlacedModel | None, sampling: Sampling) -> None:
        """The seed of `sampling` is not used: the keys in `Inputs` come from the conversations."""
        self.target, self.draft_model = target, draft
        self.sampling = sampling
        device, vocab = target.decoder.device, target.decoder.vocab
        self.inputs = Inputs(device)
        self.ids = torch.zeros(
            target.slots.spare + 1, target.slots.capacity, dtype=torch.long, device=device
        )
        """The ids of each sequence, by the slot of the target's cache. Only penalties read them."""
        counting = Penalties(sampling, vocab, device).counting
        self.earlier = torch.zeros(
            len(self.ids) if counting else 0, vocab, dtype=torch.bool, device=device
        )
        """True for the tokens of earlier replies and of the user's words, by the slot of the
        target's cache."""
        self.x = torch.zeros(MOST, dtype=torch.long, device=device)
        """The draft tokens."""
        self.decided = torch.zeros(MOST + 2, dtype=torch.long, device=device)
        """The number of accepted draft tokens, followed by the decided tokens."""
        self._noise = Noise(0, vocab, device)
        self._penalties = Penalties(sampling, vocab, device)

    @torch.inference_mode()
    def draft(self, k: int, reach: int) -> None:
        """Propose the draft tokens x_1, …, x_k. Each pass attends to `reach` rows of the draft's
        cache.

        The first pass reads the last two ids, because the draft's cache may lack both rows. If the
        cache has one of these rows already, computing it again changes it only by rounding.
        """
        assert self.draft_model is not None
        given, sampling, x = self.inputs, self.sampling, self.x
        decoder, slots = self.draft_model.decoder, self.draft_model.slots
        counts, noise = self._counts(), self._gumbel(k)
        rows, start = given.recent, given.length - 2
        for i in range(k):
            logits = decoder.forward_at(
                rows, SlotPosition(slots, given.draft_slot, start, reach), 1
            )
            scores = warp(self._penalties.apply(logits, x[:i], counts), sampling)
            x[i : i + 1] = choose(scores, None if noise is None else noise[i])
            rows, start = x[i : i + 1], given.length + i

    @torch.inference_mode()
    def verify(self, k: int, reach: int) -> None:
        """Pass the last id and `k` draft tokens through the target, and verify the draft tokens.
        The pass attends to `reach` rows of the target's cache."""
        given, sampling, x, slots = self.inputs, self.sampling, self.x[:k], self.target.slots
        rows = torch.cat((given.recent[1:], x))
        place = SlotPosition(slots, given.target_slot, given.length - 1, reach)
        logits = self.target.decoder.forward_at(rows, place, k + 1)
        scores = warp(self._penalties.apply(logits, x, self._counts()), sampling)
        n, tokens = coupled(x, scores, self._gumbel(k + 1))
        self.decided[: k + 2] = torch.cat((n, tokens))
        self._note(place.positions(k + 1), rows)

    def _gumbel(self, rows: int) -> Tensor | None:
        """Return the noise for the round's first `rows` tokens, [rows, vocab]. It is the same as
        from `Verifier.noise`, and None in the same cases."""
        if self.sampling.temperature == 0:
            return None
        return self._noise.gumbel(self.inputs.keys[:rows])

    def _counts(self) -> TokenCounts | None:
        """Return the tokens that penalties apply to; None if no penalty is on."""
        if not self._penalties.counting:
            return None
        given = self.inputs
        self._note(given.length - 1, given.recent[1:])
        ids, earlier = (
            rows.index_select(0, given.target_slot)[0] for rows in (self.ids, self.earlier)
        )
        return TokenCounts(
            counted(ids, given.length, given.start, self.target.decoder.vocab), earlier
        )

    def _note(self, positions: Tensor, ids: Tensor) -> None:
        """Store `ids` at `positions` of the sequence, for penalties."""
        if self._penalties.counting:
            at = self.inputs.target_slot * self.ids.shape[1] + positions
            self.ids.view(-1).index_copy_(0, at, ids)

    @property
    def counting(self) -> bool:
        """Whether penalties need the ids."""
        return self._penalties.counting


class Captured:
    """The captured rounds of a pair of models, for all conversations."""

    def __init__(self, work: FixedRound, capture: Capture) -> None:
        """All methods must be called on one thread."""
        self.work = work
        self._capture = capture
        self._graphs: dict[tuple[str, int, int], Graph] = {}
        self._reach = 0
        self.lacked = False
        """Whether a conversation has found no free slot."""
        self._decided_on_host = torch.zeros_like(work.decided, device="cpu")
        if work.decided.device.type == "cuda":
            self._decided_on_host = self._decided_on_host.pin_memory()

    def prepare(self) -> None:
        """Capture the usual rounds. Others are captured when they are first needed."""
        for k in USUAL:
            self._prepare(k, self._reaching(BUCKETS[0]))

    def begin(self, round_: Round, k: int, x: Tensor | None = None) -> None:
        """Load the inputs of a round with `k` draft tokens; `k` is one of `LENGTHS`. `x` are the
        draft tokens, int64; if it is None, the draft model proposes them in `draft`."""
        self._reach = self._reaching(round_.length + k)
        self._prepare(k, self._reach)
        self.work.inputs.load(round_)
        if x is not None:
            self.work.x[:k].copy_(x)

    def note(self, slot: int, start: int, ids: Sequence[int]) -> None:
        """Store the part of `ids` from index `start` on, for penalties. `ids` is the whole
        sequence, `slot` the slot of the target's cache."""
        if self.work.counting and start < len(ids):
            self.work.ids[slot, start : len(ids)] = torch.tensor(ids[start:])

    def note_earlier(self, slot: int, tokens: Set[int]) -> None:
        """Store `tokens`, the tokens of earlier replies and of the user's words, for penalties.
        `slot` is the slot of the target's cache."""
        if self.work.counting:
            self.work.earlier[slot].zero_()
            self.work.earlier[slot, sorted(tokens)] = True

    def draft(self, k: int) -> None:
        """Launch the graph that proposes `k` draft tokens."""
        self._graphs["draft", k, self._reach].replay()

    def verify(self, k: int) -> None:
        """Launch the graph that verifies `k` draft tokens."""
        self._graphs["verify", k, self._reach].replay()

    def decided(self) -> tuple[int, list[int]]:
        """Return the number of accepted draft tokens and the decided tokens. This waits for the
        device."""
        self._decided_on_host.copy_(self.work.decided, non_blocking=True)
        if self.work.decided.device.type == "cuda":
            arrived = torch.cuda.Event()
            arrived.record()
            arrived.synchronize()
        n, *tokens = cast("list[int]", cast(Any, self._decided_on_host).tolist())
        return n, tokens[: n + 1]

    def _reaching(self, rows: int) -> int:
        """Return how many rows of the cache a pass attends to if it needs `rows`: the smallest of
        `BUCKETS` that is large enough, otherwise the capacity. It is always the capacity if no
        model can attend to a bucket."""
        work, capacity = self.work, self.work.target.slots.capacity
        models = [model for model in (work.target, work.draft_model) if model is not None]
        if not any(model.decoder.attends_bucket for model in models):
            return capacity
        return next((reach for reach in BUCKETS if rows <= reach <= capacity), capacity)

    def _prepare(self, k: int, reach: int) -> None:
        """Capture the graphs for `k` draft tokens and `reach` rows that are not captured yet. This
        overwrites the inputs."""
        work = self.work
        jobs = {"verify": work.verify}
        if work.draft_model is not None and k > 0:
            jobs["draft"] = work.draft
        for name, job in jobs.items():
            if (name, k, reach) in self._graphs:
                continue
            models = work.target, work.draft_model or work.target
            target, draft = (model.slots.spare for model in models)
            nothing = [0] * (MOST + 1)
            work.inputs.load(Round((target, draft), 2, 1, (0, 0), nothing))
            work.x.zero_()
            once = partial(job, k, reach)
            once()
            self._graphs[name, k, reach] = self._capture(once)


class Rounds:
    """The captured rounds of one conversation."""

    def __init__(
        self,
        captured: Captured,
        cache: KvCache,
        draft: Draft | None,
        verifier: Verifier,
        penalties: Penalties,
    ) -> None:
        """`cache` is the target's cache. All arguments except `captured` are those of the
        conversation's speculator."""
        self._captured = captured
        self._cache = cache
        self._draft = draft
        self._caches = (cache, draft.cache) if isinstance(draft, ModelDraft) else (cache,)
        self._verifier = verifier
        self._penalties = penalties
        self._position = 0
        self._noted = 0
        """The number of ids that are stored on the device."""
        self._earlier: Set[int] | None = None
        """The tokens that `note_earlier` stored last; None if the slot has none yet."""

    def ready(self, ids: Sequence[int]) -> bool:
        """Tell whether the round after `ids` can be a captured one. For that the caches must have
        slots and enough room, and the target's cache must lack only the last id."""
        placed = all(cache.slot is not None for cache in self._caches)
        fits = 1 < len(ids) <= self._cache.capacity - MOST
        return placed and fits and self._cache.length == len(ids) - 1

    def lacks_slot(self) -> bool:
        """Return whether a cache has buffers of its own, because no slot was free. The log says so
        once."""
        lacks = any(cache.nbytes and cache.slot is None for cache in self._caches)
        if lacks and not self._captured.lacked:
            self._captured.lacked = True
            logger.warning(
                "no slot is free for one more conversation, so its rounds are not captured, and "
                "slower; a higher llm.cache_mb allows more conversations at once"
            )
        return lacks

    def begin(
        self, ids: Sequence[int], k: int, start: int, position: int
    ) -> Generator[None, None, int]:
        """Load the inputs of the round after `ids`. Return its number of draft tokens: one of
        `LENGTHS`, at most `k`.

        The reply begins at index `start` of `ids`. `position` is the index, among the turn's
        tokens, of the first token that the round decides. A draft model must have read all ids
        except the last two. A draft that is not a model proposes its tokens here; they may be fewer
        than `k`.
        """
        draft, captured, known, x = self._draft, self._captured, len(ids), None
        k, slot = _fitting(k), captured.work.target.slots.spare
        if isinstance(draft, ModelDraft):
            slot = draft.cache.slot
            draft.rollback(known - 1)
        elif draft is not None and k > 0:
            self._penalties.count(ids, start)
            offered = yield from draft.propose(ids, chain(k), None, self._penalties)
            k = _fitting(len(offered))
            x = offered.tokens[:k]
        assert self._cache.slot is not None and slot is not None
        keys = self._verifier.numbers(position, MOST + 1)
        round_ = Round((self._cache.slot, slot), known, start, (ids[-2], ids[-1]), keys)
        captured.begin(round_, k, x)
        captured.note(self._cache.slot, self._noted, ids)
        if self._earlier is not (earlier := self._penalties.earlier):
            captured.note_earlier(self._cache.slot, earlier)
            self._earlier = earlier
        if isinstance(draft, ModelDraft) and k > 0:
            draft.cache.length = known + k - 1
        self._noted = known + k
        return k

    def draft(self, k: int) -> None:
        """Launch the draft model's passes for `k` tokens, if there is a draft model."""
        if isinstance(self._draft, ModelDraft) and k > 0:
            self._captured.draft(k)

    def verify(self, k: int) -> None:
        """Launch the target's pass over the last id and `k` draft tokens."""
        self._captured.verify(k)
        self._cache.advance(k + 1)

    def settle(self) -> tuple[int, list[int]]:
        """Return the number of accepted draft tokens and the decided tokens. This waits for the
        device."""
        return self._captured.decided()

    def rollback(self, length: int) -> None:
        """Forget the stored ids from position `length` on."""
        self._noted = min(self._noted, length)
        if length == 0:  # the next sequence may have another slot
            self._earlier = None


def _fitting(k: int) -> int:
    """Return the largest of `LENGTHS` that is at most `k`."""
    return max(length for length in LENGTHS if length <= k)
