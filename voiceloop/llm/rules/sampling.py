"""Turn logits into a distribution, and draw tokens from it.

`Penalties` and then `warp` turn logits into scores; the distribution is their softmax. A token is
drawn by the Gumbel-max trick: with standard Gumbel noise g, `argmax(scores + g)` has that
distribution. Every random number depends only on seed, turn and position. So plain and speculative
decoding choose the same tokens, and a draft with the same noise is likely to propose them. This
module knows neither models nor drafts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_BITS_64 = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of the distribution that tokens are drawn from.

    They apply in this order: repetition penalty, frequency and presence penalties, bans,
    temperature, top-k, top-p, min-p.
    """

    temperature: float = 0.0
    """0 is greedy decoding, which takes the likeliest token after penalties and bans."""
    top_k: int = 0
    """Keep the k likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the likeliest tokens that together reach this probability."""
    min_p: float = 0.0
    """Keep the tokens whose probability is at least this share of the likeliest token's."""
    seed: int = 0
    repetition_penalty: float = 1.0
    """Makes tokens of this reply, of earlier replies and of the user's words less likely: divides
    their positive logits and multiplies their negative ones (Keskar et al. 2019, CTRL, section
    4.1). If earlier replies did not count, a small model would answer everything alike. If the
    user's words did not count, it would repeat them. If the whole prompt counted, replies would not
    end (docs/decisions.md)."""
    presence_penalty: float = 0.0
    """Subtracted from the logits of tokens that are in the reply (as OpenAI's API defines it)."""
    frequency_penalty: float = 0.0
    """Subtracted from a token's logit once for each time that it is in the reply (as OpenAI's API
    defines it)."""
    banned: frozenset[int] = frozenset()
    """Tokens that are never chosen."""


def counted(ids: Tensor, length: Tensor, start: Tensor, vocab: int) -> Tensor:
    """Return how often each token is in a reply, float32 [vocab].

    `ids` (int64 [capacity]) holds the reply from index `start` up to `length`. `start` and `length`
    are int64 [1] on the device. Nothing waits for the device.
    """
    at = torch.arange(len(ids), device=ids.device)
    reply = torch.where((at >= start) & (at < length), ids, torch.full_like(ids, vocab))
    counts = torch.zeros(vocab + 1, device=ids.device)
    counts.index_add_(0, reply, torch.ones(len(ids), device=ids.device))
    return counts[:vocab]


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """The tokens of a conversation that penalties apply to."""

    now: Tensor
    """How often each token is in the reply, float32 [vocab]."""
    earlier: Tensor
    """Whether each token is in an earlier reply or in the user's words; bool [vocab]."""


class Penalties:
    """The penalties and bans of one conversation. If all are off, logits are not changed.

    The penalties of a row count all tokens before it, draft tokens included. Penalties that are
    computed only once for a round would change the distribution.
    """

    def __init__(self, sampling: Sampling, vocab: int, device: torch.device) -> None:
        self._repetition = sampling.repetition_penalty
        self._presence = sampling.presence_penalty
        self._frequency = sampling.frequency_penalty
        self.counting = (self._repetition, self._presence, self._frequency) != (1, 0, 0)
        """Whether a penalty is on, so that tokens have to be counted."""
        self._banned = _mask(sampling.banned, vocab, device) if sampling.banned else None
        self._vocab, self._device = vocab, device
        self._length = self._start = 0
        self.earlier: Set[int] = frozenset()
        """The tokens of earlier replies and of the user's words."""

    @cached_property
    def _counts(self) -> TokenCounts:
        """The counts for penalties. They are made at their first use, because that is on the thread
        and stream of the model."""
        return TokenCounts(
            torch.zeros(self._vocab, device=self._device),
            torch.zeros(self._vocab, dtype=torch.bool, device=self._device),
        )

    def begin(self, earlier: Set[int]) -> None:
        """Begin a reply. `earlier` are the tokens of earlier replies and of the user's words."""
        if not self.counting or earlier == self.earlier:
            return
        self.earlier = earlier
        self._counts.earlier.zero_()
        self._counts.earlier[sorted(earlier)] = True

    def count(self, ids: Sequence[int], start: int) -> None:
        """Count the tokens of the reply. `ids` is the whole sequence, and the reply begins at index
        `start`.

        Ids that were counted before are read again only after a `rollback`.
        """
        known = start == self._start and 0 < self._length == len(ids)
        if known or not self.counting:
            return
        if start != self._start or self._length == 0:
            self._counts.now.zero_()
            self._length, self._start = 0, start
        new = ids[max(start, self._length) :]
        reply = torch.tensor(new, dtype=torch.long, device=self._device)
        self._counts.now.index_add_(0, reply, torch.ones_like(reply, dtype=torch.float32))
        self._length = len(ids)

    def rollback(self, length: int) -> None:
        """Forget the counts of tokens from position `length` on."""
        if length < self._length:
            self._length = 0  # the whole reply is counted again

    def apply(
        self,
        logits: Tensor,
        x: Tensor,
        counts: TokenCounts | None = None,
        follows: Tensor | None = None,
    ) -> Tensor:
        """Return `logits` [rows, vocab] after penalties and bans, in float32 or float64 if any of
        these is on.

        `x` (int64 [k]) are draft tokens after the counted sequence. `follows`, bool [rows, k], is
        True where a draft token comes before a row. Without `follows`, all draft tokens come before
        the last row, all but one before the row above it, and so on. `counts` replaces the counts
        that `begin` and `count` made.
        """
        if self.counting:
            counts = self._counts if counts is None else counts
            logits = self._penalised(exact(logits), x, counts, follows)
        return (
            logits if self._banned is None else exact(logits).masked_fill(self._banned, -math.inf)
        )

    def _penalised(
        self, logits: Tensor, x: Tensor, counts: TokenCounts, follows: Tensor | None
    ) -> Tensor:
        scores = self._formula(logits, counts.now, counts.earlier)
        rows, k = len(logits), len(x)
        if k == 0:
            return scores
        # Draft tokens change a few columns only.
        if follows is None:
            follows = torch.ones(rows, k, device=logits.device).tril(k - rows)
        again = follows.float() @ (x.unsqueeze(1) == x).float()
        columns = x.expand(rows, k)
        changed = self._formula(logits.gather(1, columns), counts.now[x] + again, counts.earlier[x])
        return scores.scatter_(1, columns, changed)

    def _formula(self, logits: Tensor, now: Tensor, earlier: Tensor) -> Tensor:
        if self._repetition != 1:
            weaker = torch.where(logits < 0, logits * self._repetition, logits / self._repetition)
            logits = torch.where((now > 0) | earlier, weaker, logits)
        now = now.to(logits.dtype)
        return logits - (self._frequency * now + self._presence * now.sign())


def warp(logits: Tensor, sampling: Sampling) -> Tensor:
    """Turn `logits` [rows, vocab] into scores, whose softmax is the distribution. Scores are in
    float32 or float64.

    Temperature comes first, then top-k, top-p and min-p. Each of these three may exclude tokens
    that are not excluded yet. Excluded tokens score -inf; the likeliest token is never excluded. At
    temperature 0 the logits are returned unchanged.
    """
    if sampling.temperature == 0:
        return logits
    scores = exact(logits) / sampling.temperature
    if 0 < sampling.top_k < scores.shape[-1]:
        lowest = scores.topk(sampling.top_k, -1).values[..., -1:]
        scores = scores.masked_fill(scores < lowest, -torch.inf)
    if sampling.top_p < 1:
        ordered, order = torch.sort(scores, stable=True, dim=-1, descending=True)
        probabilities = ordered.softmax(-1)
        # A token is excluded if the likelier ones reach top_p without it.
        over = (probabilities.cumsum(-1) - probabilities) >= sampling.top_p
        over[..., :1].zero_()
        scores = scores.masked_fill(over.scatter(-1, order, over), -torch.inf)
    if sampling.min_p > 0:
        floor = scores.amax(-1, keepdim=True) + math.log(sampling.min_p)
        scores = scores.masked_fill(scores < floor, -torch.inf)
    return scores


def choose(scores: Tensor, noise: Tensor | None) -> Tensor:
    """Choose one token for each row of `scores` [rows, vocab]. Return the tokens, int64 [rows].

    `noise` is Gumbel noise, [rows, vocab]. If it is None, the token with the largest score is
    chosen.
    """
    return (scores if noise is None else scores + noise).argmax(-1)


def decide_call(scores: Tensor, logits: Tensor, begins: frozenset[int]) -> Tensor:
    """Decide whether a reply begins with a tool call. Return the `scores` [1, vocab] of its first
    token, with -inf for the tokens that are excluded by this decision.

    The tokens `begins` are those with which a call begins. The reply begins with a call if these
    tokens together have a probability of at least 0.5 by the model's `logits` [vocab]. Comparing
    single tokens would be wrong: the likeliest token may begin a call although speaking is
    likelier, because words may begin in many ways.
    """
    calls = _mask(begins, logits.shape[-1], logits.device)
    calling = logits.float().softmax(-1)[calls].sum() >= 0.5  # stays on the device: no waiting
    return scores.masked_fill(calls != calling, -torch.inf)


def exact(logits: Tensor) -> Tensor:
    """Return `logits` in float32, or unchanged if they are in float64."""
    return logits if logits.dtype == torch.float64 else logits.float()


class Noise:
    """Random numbers that depend only on their keys, no matter how a token is decoded.

    They come from SplitMix64 (Steele, Lea and Flood 2014). Each key begins a separate sequence.
    """

    def __init__(self, seed: int, vocab: int, device: torch.device) -> None:
        self._seed = seed
        self._device = device
        # Metal has no float64, so for Metal the same numbers are computed on the CPU.
        self._place = torch.device("cpu") if device.type == "mps" else device
        self._vocab = vocab

    @cached_property
    def _counters(self) -> Tensor:
        """Offsets that make the numbers of one key differ, int64 [vocab]; made at the first use."""
        return torch.arange(1, self._vocab + 1, device=self._place) * _signed(_GOLDEN)

    def numbers(self, turn: int, position: int, rows: int) -> list[int]:
        """Return the keys for `rows` tokens of the turn, from index `position` on, as signed 64-bit
        integers."""
        state = _mixed(0, self._seed, turn)
        return [_signed(_mixed(state, position + row)) for row in range(rows)]

    def keys(self, turn: int, position: int, rows: int) -> Tensor:
        """Return the same keys as `numbers`, but as a tensor, int64 [rows]."""
        keys = self.numbers(turn, position, rows)
        return torch.tensor(keys, dtype=torch.long, device=self._place)

    def gumbel(self, keys: Tensor) -> Tensor:
        """Return Gumbel noise for each of `keys` [rows]: float64 [rows, vocab], or float32 on
        Metal."""
        uniform = _uniform(keys.to(self._place).unsqueeze(1) + self._counters)
        noise = -(-uniform.log()).log()
        return noise if self._place == self._device else noise.float().to(self._device)


def seeds(seed: int, count: int) -> list[int]:
    """Return `count` seeds: `seed` itself, then others of 32 bits that are derived from it."""
    return [seed, *(_mixed(0, seed, number) & 0xFFFFFFFF for number in range(1, count))]


@lru_cache(maxsize=16)
def _mask(tokens: frozenset[int], vocab: int, device: torch.device) -> Tensor:
    """Return a row that is True for `tokens`, bool [vocab]. Tokens without a column are left out:
    some tokenizers have more tokens than their model. Conversations share it."""
    mask = torch.zeros(vocab, dtype=torch.bool)
    mask[[token for token in tokens if token < vocab]] = True
    return mask.to(device)


def _mixed(state: int, *parts: int) -> int:
    """Mix each of `parts` into a 64-bit `state`, by SplitMix64."""
    for part in parts:
        state = (state ^ (part & _BITS_64)) + _GOLDEN & _BITS_64
        state = (state ^ state >> 30) * _MIX_1 & _BITS_64
        state = (state ^ state >> 27) * _MIX_2 & _BITS_64
        state ^= state >> 31
    return state


def _uniform(bits: Tensor) -> Tensor:
    """Return numbers in (0, 1) for int64 states of SplitMix64."""
    bits = (bits ^ _shift(bits, 30)) * _signed(_MIX_1)
    bits = (bits ^ _shift(bits, 27)) * _signed(_MIX_2)
    bits = bits ^ _shift(bits, 31)
    return (_shift(bits, 12).double() + 0.5) * 2.0**-52


def _signed(value: int) -> int:
    """Return the 64 bits of `value` as torch's int64 holds them."""
    return value - 2**64 if value >= 2**63 else value


def _shift(bits: Tensor, by: int) -> Tensor:
    """Shift `bits` to the right and fill with zeros; torch's own shift keeps the sign."""
    return (bits >> by) & (2 ** (64 - by) - 1)
