"""Computes the encoder states of a full window of 30 seconds for little more work than its speech
takes.

The rest of the window is silence. Its states are most of the encoder's work, and they depend little
on the speech. So the states of a silent window are computed once, when the model is loaded. For a
window with speech, the encoder computes only the speech and some positions of the silence, the
pivots P. In each layer, the change d of the pivots' keys and values against those of the silent
window is interpolated to all other positions of the silence. Speech and pivots then attend to a
whole window. The usual way is to cut off the silence instead. But then the decoder reads states
that it was not trained on, and says the last phrase again.

The interpolation is regression by a Gaussian process. Here i and j are positions, and s_i are the
states of the silent window after their mean is subtracted:

    covariance      k(i, j) = exp((cos(s_i, s_j) - 1) / COSINE_SCALE - |i - j| / LENGTH)
    interpolation   d_j = k(j, P) (k(P, P) + NOISE I)^-1 d_P
    next pivot      argmax_i r_i sqrt(a_i), where r_i = k(i, i) - sum_m L_im^2

The second line is the mean of the posterior (Rasmussen and Williams, Gaussian Processes for Machine
Learning, 2006, equation 2.25). The third line is the greedy pivoted Cholesky decomposition
(Harbrecht, Peters and Schneider, On the low-rank approximation by the pivoted Cholesky
decomposition, 2012), weighted by the attention a_i that position i receives from afar. L is the
factor so far, and r_i is the variance of position i that the chosen pivots leave unexplained. The
form of the covariance matters: in Whisper base, states of silence repeat themselves every 0.16 s,
and all positions attend to a few of them.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.asr.features import FRAMES_PER_STATE, Features
from voiceloop.asr.whisper_encoder import States, WhisperEncoder

PIVOTS = 160
"""Number of positions of a silent window that are chosen as pivots."""
LENGTH = 200
"""Distance in positions over which the covariance falls to 1/e."""
COSINE_SCALE = 1.0
"""Cosine distance of two states (one minus their cosine) over which the covariance falls to 1/e."""
NOISE = 1e-2
"""Share of a position's variance that other positions do not explain."""
QUERY_STRIDE = 13
"""Distance in positions between the queries whose attention is summed. It differs from the period
with which states repeat themselves."""
AFAR = 50
"""Distance in positions within which attention is not counted, because every position is attended
to by its neighbours."""
LEAST = 1e-6
"""Minimum of the unexplained variance; smaller values are rounding errors."""


class ShortEncoder:
    """Computes approximate states of windows that are silent after their beginning.

    Relative to their standard deviation, the states of the speech differ by 0.006 (tiny.en) and
    0.015 (base) from those that `WhisperEncoder` gives for the full window, and the states of the
    silence by 0.07 and 0.14. This was measured with some 90 clips, in windows that are silent after
    2 to 10 s. CTranslate2's weights of eight bits move the states by 0.04.
    """

    BEHIND = 2
    """Number of silent states that the features have after the speech. The second stands for the
    last position of the window, and the first for all other silent positions."""

    @torch.inference_mode()
    def __init__(self, encoder: WhisperEncoder, quiet: float) -> None:
        """Encode the silent window, whose features are all `quiet`, and choose its pivots."""
        self._encoder = encoder
        silent = np.full((encoder.mels, FRAMES_PER_STATE * encoder.states), quiet, np.float32)
        rows = encoder.convolved(silent) + encoder.positions
        query_positions = torch.arange(0, encoder.states, QUERY_STRIDE)
        afar = (query_positions[:, None] - torch.arange(encoder.states)).abs() > AFAR
        attention = torch.zeros(encoder.states, dtype=rows.dtype)
        self._keys_values: list[Tensor] = []
        """Keys and values of the silent window, one tensor for each layer."""
        for layer in encoder.layers:
            queries, keys_values = encoder.project(layer, rows)
            self._keys_values.append(keys_values)
            attention += (encoder.attention(queries[query_positions], keys_values) * afar).sum(0)
            rows = encoder.finish(layer, rows, encoder.attend(queries, keys_values))
        self._states = encoder.end(rows)
        kernel = covariance(self._states)
        # In descending order, so that the pivots behind any amount of speech come first.
        self._pivots = pivots(kernel, attention, min(PIVOTS, encoder.states)).flip(0)
        self._interpolation = Interpolation(kernel[self._pivots], self._pivots)

    @torch.inference_mode()
    def __call__(self, features: Features) -> States:
        """Return all states of a full window that begins with `features` and goes on in silence.

        The last `BEHIND` states of `features` must be silent.
        """
        encoder = self._encoder
        embedded = encoder.convolved(features)
        heard = len(embedded) - self.BEHIND
        at = self._pivots[: int((self._pivots >= heard).sum())]
        quiet = embedded[heard].expand(len(at), -1).clone()
        quiet[at == encoder.states - 1] = embedded[-1]
        encoded = torch.cat((torch.arange(heard), at))
        rows = torch.cat((embedded[:heard], quiet)) + encoder.positions[encoded]
        weights = self._interpolation(len(at), heard)
        for layer, silent in zip(encoder.layers, self._keys_values, strict=True):
            queries, own = encoder.project(layer, rows)
            keys_values = _filled(own, silent, heard, at, weights)
            rows = encoder.finish(layer, rows, encoder.attend(queries, keys_values))
        return _filled(encoder.end(rows), self._states, heard, at, weights).numpy()


def _filled(own: Tensor, silent: Tensor, heard: int, at: Tensor, weights: Tensor) -> Tensor:
    """Return the rows of a whole window. The `heard` rows of speech and the pivots `at` come from
    `own`. All other rows are those of `silent`, plus the changes that are interpolated from the
    pivots."""
    whole = torch.empty_like(silent)
    whole[:heard] = own[:heard]
    changes = own[heard:] - silent[at]
    torch.addmm(silent[heard:], weights, changes, out=whole[heard:])
    whole[at] = own[heard:]
    return whole


def covariance(states: Tensor) -> Tensor:
    """Return the covariance k between the changes at every two positions, from 0 to 1: [states,
    states]."""
    directions = F.normalize(states - states.mean(0), dim=1)
    at = torch.arange(len(states), dtype=torch.float32)
    distance = (at[:, None] - at).abs()
    return torch.exp((directions @ directions.T - 1) / COSINE_SCALE - distance / LENGTH)


class Interpolation:
    """Computes the weights by which changes at the pivots give the change at every position."""

    def __init__(self, kernel: Tensor, at: Tensor) -> None:
        """Take `kernel`, the covariance of the pivots `at` with all positions: [pivots, states]."""
        among = kernel[:, at] + NOISE * torch.eye(len(at), dtype=kernel.dtype)
        # For fewer pivots, the factor and the solution are the leading parts of these.
        self._factor = torch.linalg.cholesky(among)
        self._solved = torch.linalg.solve_triangular(self._factor, kernel, upper=False)

    def __call__(self, count: int, first: int) -> Tensor:
        """Return the weights of the first `count` pivots for the positions from `first` on:
        [states - first, count]."""
        factor, solved = self._factor[:count, :count], self._solved[:count, first:]
        return torch.linalg.solve_triangular(factor.T, solved, upper=True).T


def pivots(kernel: Tensor, attention: Tensor, count: int) -> Tensor:
    """Return `count` positions that explain the others best, in ascending order.

    They are chosen one by one, by the covariance `kernel` [states, states] and the `attention` that
    each position receives [states]. The formula is in the module's docstring.
    """
    weight = attention.sqrt()
    residual = kernel.diagonal().clone()
    factor = torch.zeros(len(kernel), count, dtype=kernel.dtype)
    chosen: list[int] = []
    for number in range(count):
        gain = residual * weight
        gain[chosen] = -math.inf
        pivot = int(gain.argmax())
        chosen.append(pivot)
        column = kernel[:, pivot] - factor[:, :number] @ factor[pivot, :number]
        factor[:, number] = column / residual[pivot].sqrt()
        residual = (residual - factor[:, number] ** 2).clamp(min=LEAST)
    return torch.tensor(sorted(chosen))
