"""Computes the encoder states of a full window of 30 seconds from the speech in it and a few
positions of the silence.

A short utterance fills only the beginning of a window. The rest is silence. The states of the
silence are most of the encoder's work, and they depend little on the speech. So a silent window is
encoded once, when the model is loaded. For a window with speech, the encoder computes only the
positions of the speech and some positions P of the silence, the pivots. In each layer, d_P is the
difference between the keys and values of the pivots and those of the same positions in the silent
window. From d_P, the differences d_j at all other positions j of the silence are interpolated.
Speech and pivots then attend to a whole window. A simpler way is to cut off the silence. But then
the decoder reads states on which it was not trained, and says the last phrase again.

The interpolation is regression by a Gaussian process. Here i and j are positions, and s_i are the
states of the silent window after their mean is subtracted:

    covariance      k(i, j) = exp((cos(s_i, s_j) - 1) / COSINE_SCALE - |i - j| / LENGTH)
    interpolation   d_j = k(j, P) (k(P, P) + NOISE I)^-1 d_P
    next pivot      argmax_i r_i sqrt(a_i), where r_i = k(i, i) - sum_m L_im^2

The second line is the mean of the posterior (Rasmussen and Williams, Gaussian Processes for Machine
Learning, 2006, equation 2.25). The third line is the greedy pivoted Cholesky decomposition
(Harbrecht, Peters and Schneider, On the low-rank approximation by the pivoted Cholesky
decomposition, 2012), weighted by a_i. Here a_i is the attention that position i receives from
positions farther away than `AFAR`, L is the factor so far, and r_i is the variance of position i
that the chosen pivots leave unexplained. The covariance depends on the states and not only on the
distance: in Whisper base, states of silence repeat themselves every 0.16 s, and all positions
attend to a few of them.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.asr.encoding import BEHIND, FRAMES_PER_STATE, QUIET, Features, States
from voiceloop.asr.whisper_encoder import WhisperEncoder

PIVOTS = 160
"""Number of positions of a silent window that are chosen as pivots."""
LENGTH = 200
"""Distance in positions over which the covariance falls to 1/e."""
COSINE_SCALE = 1.0
"""Cosine distance of two states (one minus their cosine) over which the covariance falls to 1/e."""
NOISE = 1e-2
"""Share of a position's variance that other positions do not explain. It is added to the diagonal
of the covariance."""
QUERY_STRIDE = 13
"""Distance in positions between the queries over which attention is summed. It is not a multiple of
8 positions, the period with which states of silence repeat themselves."""
AFAR = 50
"""Attention between positions that are at most this far apart is not counted. Every position
attends to its neighbours, so this attention tells nothing."""
LEAST = 1e-6
"""Minimum of the unexplained variance; smaller values are rounding errors."""


class ShortEncoder:
    """Computes approximate states of windows that are silent after their beginning.

    The states differ a little from those that `WhisperEncoder` gives for the full window. Relative
    to the standard deviation of the states, the difference is 0.006 (tiny.en) and 0.015 (base) in
    the speech, and 0.07 and 0.14 in the silence. This was measured with some 90 clips, in windows
    that are silent after 2 to 10 s. For comparison: CTranslate2's weights of 8 bits move the states
    by 0.04.
    """

    @torch.inference_mode()
    def __init__(self, encoder: WhisperEncoder) -> None:
        """Encode the silent window, whose features are all `QUIET`, and choose its pivots."""
        self._encoder = encoder
        silent = np.full((encoder.mels, FRAMES_PER_STATE * encoder.states), QUIET, np.float32)
        rows = encoder.convolved(torch.from_numpy(silent)) + encoder.positions
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
        # In descending order. So the pivots after the speech are the first ones, for any speech.
        self._pivots = pivots(kernel, attention, min(PIVOTS, encoder.states)).flip(0)
        self._interpolation = Interpolation(kernel[self._pivots], self._pivots)

    @torch.inference_mode()
    def __call__(self, features: Features) -> States:
        """Return all states of a full window that begins with `features` and goes on in silence.

        The last `BEHIND` states of `features` (two feature frames each) must be silent.
        """
        encoder = self._encoder
        embedded = encoder.convolved(torch.from_numpy(features))
        heard = len(embedded) - BEHIND
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
    """Return k(i, j) of the module's docstring for every two positions: [states, states], from 0 to
    1."""
    directions = F.normalize(states - states.mean(0), dim=1)
    at = torch.arange(len(states), dtype=torch.float32)
    distance = (at[:, None] - at).abs()
    return torch.exp((directions @ directions.T - 1) / COSINE_SCALE - distance / LENGTH)


class Interpolation:
    """Computes weights that interpolate the changes at the pivots to all positions of the
    silence."""

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

    `kernel` is the covariance: [states, states]. `attention` is what each position receives:
    [states]. The module's docstring has the formula by which one position after the other is
    chosen.
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
