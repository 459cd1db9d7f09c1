"""The states of a full window for little more than what is said in it.

Behind the speech a window of 30 seconds is silence, whose states are most of the encoder's work and
depend little on what was said. So they are made once, when the model is loaded, for a window in
which nothing is heard. With the speech only some places of the silence are encoded, and what it
has changed there is carried over to all others; speech and places attend to all of that as they
would to the states themselves. Where the silence is cut off instead, which is the usual way, the
decoder is given what it was not trained on: it says the last phrase again.

How to carry over is regression by a Gaussian process (Rasmussen and Williams, Gaussian Processes
for Machine Learning, 2006, section 2.2): places are alike that are near each other and whose states
of silence are alike, and those are encoded that tell the most of all. That matters: in Whisper base
states repeat themselves every 0.16 s, and to a few of the silence all others turn.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.asr.encoder import Encoder, States
from voiceloop.asr.features import FRAMES_PER_STATE, Features

PLACES = 160
"""Places of a window that are encoded where they are silent."""
NEAR = 200
"""States apart at which places are alike by 1/e."""
ALIKE = 1.0
"""Likewise the difference of their states, as one minus the cosine."""
NOISE = 1e-2
"""Variance of what no other place tells of a place, of its own variance."""
ASKED = 13
"""Of so many states one is asked where it looks; not of a period of theirs."""
AFAR = 50
"""All look at what is so near, or nearer."""
LEAST = 1e-6
"""What is left untold of a place at the least; less is the error of rounding."""


class ShortEncoder:
    """States of windows that are silent but for their beginning; `encoder`'s, but for an error.

    Relative to their deviation those of the speech are 0.006 (tiny.en) and 0.015 (base) from what
    `encoder` gives for the full window, and those of the silence 0.07 and 0.14: some 90 clips and
    beginnings of 2 to 10 s. Weights of eight bits, as CTranslate2 has them, move them by 0.04.
    """

    BEHIND = 2
    """States of silence that are given with the speech: the first, and the last of the window."""

    @torch.inference_mode()
    def __init__(self, encoder: Encoder, quiet: float) -> None:
        """`quiet` is what all features of silence are, more or less."""
        self._encoder = encoder
        silent = np.full((encoder.mels, FRAMES_PER_STATE * encoder.states), quiet, np.float32)
        rows = encoder.convolved(silent) + encoder.positions
        asked = torch.arange(0, encoder.states, ASKED)
        afar = (asked[:, None] - torch.arange(encoder.states)).abs() > AFAR
        drawn = torch.zeros(encoder.states, dtype=rows.dtype)
        self._seen: list[Tensor] = []
        """Keys and values of a silent window, of each layer."""
        for layer in encoder.layers:
            queries, seen = encoder.project(layer, rows)
            self._seen.append(seen)
            drawn += (encoder.attention(queries[asked], seen) * afar).sum(0)
            rows = encoder.finish(layer, rows, encoder.attend(queries, seen))
        self._states = encoder.end(rows)
        alike = likeness(self._states)
        # From the end on: what is behind some speech comes first.
        self._places = telling(alike, drawn, min(PLACES, encoder.states)).flip(0)
        self._carry = Carry(alike[self._places], self._places)

    @torch.inference_mode()
    def __call__(self, features: Features) -> States:
        """All states of a full window that begins with `features`, of which the last `BEHIND`
        states are silence through and through, as is what follows."""
        encoder = self._encoder
        embedded = encoder.convolved(features)
        heard = len(embedded) - self.BEHIND
        places = self._places[: int((self._places >= heard).sum())]
        quiet = embedded[heard].expand(len(places), -1).clone()
        quiet[places == encoder.states - 1] = embedded[-1]
        at = torch.cat((torch.arange(heard), places))
        rows = torch.cat((embedded[:heard], quiet)) + encoder.positions[at]
        carry = self._carry(len(places), heard)
        for layer, silence in zip(encoder.layers, self._seen, strict=True):
            queries, own = encoder.project(layer, rows)
            seen = _spread(own, silence, heard, places, carry)
            rows = encoder.finish(layer, rows, encoder.attend(queries, seen))
        return _spread(encoder.end(rows), self._states, heard, places, carry).numpy()


def _spread(own: Tensor, silence: Tensor, heard: int, places: Tensor, carry: Tensor) -> Tensor:
    """What a whole window has, from the `own` of what was encoded and from that of silence."""
    whole = torch.empty_like(silence)
    whole[:heard] = own[:heard]
    changed = own[heard:] - silence[places]
    torch.addmm(silence[heard:], carry, changed, out=whole[heard:])
    whole[places] = own[heard:]
    return whole


def likeness(states: Tensor) -> Tensor:
    """How far what changes at one place changes at another, from 0 to 1: [states, states]."""
    directions = F.normalize(states - states.mean(0), dim=1)
    at = torch.arange(len(states), dtype=torch.float32)
    apart = (at[:, None] - at).abs()
    return torch.exp((directions @ directions.T - 1) / ALIKE - apart / NEAR)


class Carry:
    """How much of a change at some places each state has."""

    def __init__(self, alike: Tensor, places: Tensor) -> None:
        """`alike` is how much the places are to all states: [places, states]."""
        among = alike[:, places] + NOISE * torch.eye(len(places), dtype=alike.dtype)
        # What fewer of the places need is the beginning of both.
        self._root = torch.linalg.cholesky(among)
        self._told = torch.linalg.solve_triangular(self._root, alike, upper=False)

    def __call__(self, count: int, first: int) -> Tensor:
        """Of the first `count` places, in states from the `first` on: [states - first, count]."""
        root, told = self._root[:count, :count], self._told[:count, first:]
        return torch.linalg.solve_triangular(root.T, told, upper=True).T


def telling(alike: Tensor, drawn: Tensor, count: int) -> Tensor:
    """The `count` places that together tell the most of all others, in order.

    Each is the one that those before it tell the least of (pivoted Cholesky decomposition), where
    a place counts for more that has `drawn` attention: [states].
    """
    weight = drawn.sqrt()
    untold = alike.diagonal().clone()
    told = torch.zeros(len(alike), count, dtype=alike.dtype)
    places: list[int] = []
    for number in range(count):
        wanted = untold * weight
        wanted[places] = -math.inf
        place = int(wanted.argmax())
        places.append(place)
        column = alike[:, place] - told[:, :number] @ told[place, :number]
        told[:, number] = column / untold[place].sqrt()
        untold = (untold - told[:, number] ** 2).clamp(min=LEAST)
    return torch.tensor(sorted(places))
