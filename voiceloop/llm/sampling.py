"""How a row of logits becomes a token: warping, then a choice by noise that is keyed by position.

A token is chosen by the Gumbel-max trick: `argmax(scores + g)` with standard Gumbel noise g has
exactly the law softmax(scores). The noise depends on (seed, turn, position) alone, so plain and
speculative decoding choose the same tokens, and a draft that uses the same noise guesses them.
This module knows neither models nor drafts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_BITS_64 = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """What is done to the target's law before a token is drawn from it."""

    temperature: float = 0.0
    """0 is greedy; the rest is then without effect."""
    top_k: int = 0
    """Keep the k likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the likeliest tokens that together reach this probability."""
    min_p: float = 0.0
    """Keep the tokens at least this likely next to the likeliest."""
    seed: int = 0


def warp(logits: Tensor, sampling: Sampling) -> Tensor:
    """Scores whose softmax is the law to sample from; shape [rows, vocab], at least float32.

    Temperature, then top-k, top-p and min-p, each on what the one before has left. Tokens that are
    ruled out score -inf; the likeliest never is. Needs a temperature above 0.
    """
    scores = logits.double() if logits.dtype == torch.float64 else logits.float()
    scores = scores / sampling.temperature
    if 0 < sampling.top_k < scores.shape[-1]:
        lowest = scores.topk(sampling.top_k, -1).values[..., -1:]
        scores = scores.masked_fill(scores < lowest, -torch.inf)
    if sampling.top_p < 1:
        ordered, order = torch.sort(scores, stable=True, dim=-1, descending=True)
        law = ordered.softmax(-1)
        # A token goes if the likelier ones reach top_p without it.
        over = (law.cumsum(-1) - law) >= sampling.top_p
        over[..., 0] = False
        scores = scores.masked_fill(over.scatter(-1, order, over), -torch.inf)
    if sampling.min_p > 0:
        floor = scores.amax(-1, keepdim=True) + torch.tensor(sampling.min_p).log().item()
        scores = scores.masked_fill(scores < floor, -torch.inf)
    return scores


def gumbel(
    sampling: Sampling, turn: int, position: int, rows: int, vocab: int, device: torch.device
) -> Tensor | None:
    """Noise for the reply's tokens `position`, `position + 1`, …; None where decoding is greedy.

    Shape [rows, vocab], float64. Row i is the same for every way of reaching it. The bits come from
    SplitMix64 (Steele, Lea and Flood 2014), one stream for each position.
    """
    if sampling.temperature == 0:
        return None
    # Metal has no float64; the noise is the same wherever it is made.
    place = torch.device("cpu") if device.type == "mps" else device
    keys = [_signed(_key(sampling.seed, turn, position + row)) for row in range(rows)]
    counts = torch.arange(1, vocab + 1, device=place) * _signed(_GOLDEN)
    bits = torch.tensor(keys, device=place).unsqueeze(1) + counts
    bits = (bits ^ _shift(bits, 30)) * _signed(_MIX_1)
    bits = (bits ^ _shift(bits, 27)) * _signed(_MIX_2)
    bits = bits ^ _shift(bits, 31)
    uniform = (_shift(bits, 12).double() + 0.5) * 2.0**-52
    noise = -(-uniform.log()).log()
    return noise.float().to(device) if device.type == "mps" else noise


def choose(logits: Tensor, sampling: Sampling, noise: Tensor | None) -> Tensor:
    """One token for each row of `logits` [rows, vocab]: int64 [rows].

    `noise` holds the rows' own noise from `gumbel`; without it the likeliest token is taken.
    """
    if noise is None:
        return logits.argmax(-1)
    return (warp(logits, sampling) + noise).argmax(-1)


def _key(*parts: int) -> int:
    state = 0
    for part in parts:
        state = (state ^ (part & _BITS_64)) + _GOLDEN & _BITS_64
        state = (state ^ state >> 30) * _MIX_1 & _BITS_64
        state = (state ^ state >> 27) * _MIX_2 & _BITS_64
        state ^= state >> 31
    return state


def _signed(value: int) -> int:
    """The 64 bits of `value` as torch's int64 holds them."""
    return value - 2**64 if value >= 2**63 else value


def _shift(bits: Tensor, by: int) -> Tensor:
    """Logical shift to the right; torch's own keeps the sign."""
    return (bits >> by) & (2 ** (64 - by) - 1)
