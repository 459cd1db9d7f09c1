"""A HiFi-GAN decoder run in windows, whose joined output is that of one run over the whole.

The decoder (Kong et al. 2020, "HiFi-GAN", section 2.2) is a chain of convolutions, zero-padded at
both ends, so a sample depends on a fixed number of latent frames around its own. Each window is
decoded with that many frames more on each side, and the samples that they give are dropped. At the
ends of the latent there are no more frames, and the padding is that of one run over the whole. This
module does not know where the latent comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Conv1d, ConvTranspose1d
from torch.nn.utils import parametrize

from voiceloop.types import Pcm


@dataclass(frozen=True, slots=True)
class Upsampling:
    """A transposed convolution, and the residual blocks behind it."""

    kernel: int
    stride: int
    padding: int
    reach: int
    """Samples to each side that the widest of the blocks sees."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """What decides which frames a sample depends on."""

    before: int
    """Frames to each side that the first convolution sees."""
    upsamplings: tuple[Upsampling, ...]
    after: int
    """Samples to each side that the last convolution sees."""

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return prod(upsampling.stride for upsampling in self.upsamplings)

    def context(self) -> tuple[int, int]:
        """Frames before and after a frame that its samples depend on."""
        first, last = -self.after, self.hop - 1 + self.after
        for up in reversed(self.upsamplings):
            # Sample n of a transposed convolution is made of the inputs m for which
            # 0 <= n + padding - m * stride < kernel.
            first = ceil((first - up.reach + up.padding - up.kernel + 1) / up.stride)
            last = floor((last + up.reach + up.padding) / up.stride)
        return self.before - first, self.before + last


def geometry(decoder: Any) -> Geometry:
    """Read it off a `HifiganGenerator` of Coqui TTS."""
    ups: Sequence[ConvTranspose1d] = list(decoder.ups)
    parallel = len(decoder.resblocks) // len(ups)
    upsamplings = [
        Upsampling(
            up.kernel_size[0],
            up.stride[0],
            int(up.padding[0]),
            max(_reach(block) for block in decoder.resblocks[i * parallel : (i + 1) * parallel]),
        )
        for i, up in enumerate(ups)
    ]
    return Geometry(_reach(decoder.conv_pre), tuple(upsamplings), _reach(decoder.conv_post))


def _reach(chain: torch.nn.Module) -> int:
    """Samples to each side that a chain of convolutions sees."""
    return sum(
        conv.dilation[0] * (conv.kernel_size[0] - 1) // 2
        for conv in chain.modules()
        if isinstance(conv, Conv1d)
    )


LENGTHS = {"cuda": (40, 72, 112, 192, 272)}
"""Frames that a decoder is given at once, by the kind of device: on a GPU each of its convolutions
is planned anew for every length that was not met before. A processor plans nothing, and would only
have more to do. These fit the windows of `windows`."""


def padding(given: int, lengths: Sequence[int], *, first: bool, last: bool) -> tuple[int, int]:
    """Frames before and after `given` ones that make them one of the `lengths`.

    They come where nothing depends on them, never at an end of the latent itself, the `first` or
    the `last` one, where a decoder takes what is not there for silence. None where there is no
    such side, or no such length.
    """
    more = next((length for length in lengths if length >= given), given) - given
    if not last:
        return 0, more
    return (0, 0) if first else (more, 0)


class Vocoder:
    """A decoder of Coqui TTS, whose weights are taken as they are from now on."""

    def __init__(self, decoder: Any, lengths: Sequence[int] = ()) -> None:
        """What it is given at once is brought to one of the `lengths`, where it can be."""
        fix_weights(decoder)
        self._decoder = decoder
        self._lengths = lengths
        self._planned = False
        """It has been given all of them."""
        shape = geometry(decoder)
        self._before, self.after = shape.context()
        """`after`: frames behind a window that its last samples depend on."""
        self.hop = shape.hop
        """Samples per frame."""

    @torch.inference_mode()
    def decode(self, latent: Tensor, start: int, end: int, condition: Tensor | None = None) -> Pcm:
        """Samples of the frames from `start` to `end` of `latent` [1, channels, frames].

        `condition` [1, channels, 1] is the speaker's, where there are several.
        """
        self._plan(latent, condition)
        frames = latent.shape[-1]
        begin, after = max(0, start - self._before), end + self.after
        given = latent[:, :, begin:after]
        left, right = padding(
            *(given.shape[-1], self._lengths),
            first=start < self._before,
            last=end == frames or after > frames,
        )
        pcm = self._decoder(F.pad(given, (left, right)), g=condition)[0, 0]
        # A decoder may give a sample or so beyond its last frame; it belongs to the end.
        stop = None if end == frames else (end - begin + left) * self.hop
        return pcm[(start - begin + left) * self.hop : stop].float().cpu().numpy()

    def _plan(self, latent: Tensor, condition: Tensor | None) -> None:
        """Before anything else, on the thread that decodes: plans are kept by thread."""
        if not self._planned:
            for length in self._lengths:
                self._decoder(latent.new_zeros(1, latent.shape[1], length), g=condition)
        self._planned = True


def fix_weights(model: torch.nn.Module) -> None:
    """Replace weights that are computed anew in every pass (weight norm) by what they come to."""
    for module in list(model.modules()):
        if parametrize.is_parametrized(module):
            for name in list(module.parametrizations):  # pyright: ignore[reportArgumentType]
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)
