"""Two replies that ought to be the same, on a processor that rounds as it likes.

A processor may sum the products of a row in an order that depends on how many rows there are, so
that logits of the same tokens differ by some rounding. Where the two best scores are closer
together than that, either may be chosen, and from there on the replies may differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from voiceloop.llm.model.attention import SlotPosition
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.rules.sampling import Noise, Penalties, Sampling, warp

ROUNDING = 1e-5
"""How far two ways of computing a logit in single precision may be apart, next to the largest."""


def ties(
    model: Decoder,
    sampling: Sampling,
    prompt: Sequence[int],
    one: Sequence[int],
    other: Sequence[int],
    turn: int = 1,
) -> int:
    """0 where both replies are the same; 1 where they are up to a near tie, as `model` sees it.

    AssertionError where they differ in a token that was not as good as the other. Two tokens of
    which one is only just cut off by top-k, top-p or min-p do not count as a tie.
    """
    pairs = enumerate(zip(one, other, strict=False))
    place = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    if place == len(one) == len(other):
        return 0
    assert place < min(len(one), len(other)), "one of the replies ends before the other"
    scores, largest = _scores(model, sampling, prompt, one[:place], turn)
    apart = float(scores[one[place]] - scores[other[place]])
    allowed = 2 * ROUNDING * largest / (sampling.temperature or 1)
    assert abs(apart) <= allowed, f"token {place}: {one[place]}, {other[place]} are {apart} apart"
    return 1


def _scores(
    model: Decoder, sampling: Sampling, prompt: Sequence[int], reply: Sequence[int], turn: int
) -> tuple[Tensor, float]:
    """What the token after `reply` is chosen by, [vocab], and the largest logit."""
    ids = torch.tensor([*prompt, *reply])
    logits = model.forward(ids, KvCache(len(ids)), 1)
    penalties = Penalties(sampling, model.vocab, model.device)
    penalties.count(ids.tolist(), len(prompt))
    scores = warp(penalties.apply(logits, ids[:0]), sampling)[0].double()
    if sampling.temperature:
        noise = Noise(sampling.seed, model.vocab, model.device)
        scores = scores + noise.gumbel(noise.keys(turn, len(reply), 1))[0]
    return scores, float(logits.abs().max())


class Uneven:
    """A model on a processor whose rounding depends on how many rows a pass has.

    An even number of them goes through it one by one, and logits are off by a little that differs
    from one number to the next.
    """

    def __init__(self, inner: Decoder) -> None:
        self.inner = inner
        self.vocab, self.parameters, self.device = inner.vocab, inner.parameters, inner.device
        self.dtype, self.attends_bucket, self.pass_bytes = inner.dtype, inner.attends_bucket, 0
        self.chunk = inner.chunk

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """See `Decoder.forward`."""
        if len(ids) % 2:
            logits = self.inner.forward(ids, cache, keep)
        else:
            rows = [self.inner.forward(one, cache, 1) for one in ids.split(1)]
            logits = torch.cat(rows)[-keep:]
        return self._off(logits, len(ids))

    def forward_at(self, ids: Tensor, place: SlotPosition, keep: int) -> Tensor:
        """See `Decoder.forward_at`."""
        return self._off(self.inner.forward_at(ids, place, keep), len(ids))

    def _off(self, logits: Tensor, rows: int) -> Tensor:
        generator = torch.Generator().manual_seed(rows)
        off = torch.rand(logits.shape[-1], generator=generator) - 0.5
        return logits + off * ROUNDING * float(logits.abs().max())
