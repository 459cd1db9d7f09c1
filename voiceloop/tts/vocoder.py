"""A HiFi-GAN decoder run in windows, whose joined output is that of one run over the whole.

The decoder (Kong et al. 2020, "HiFi-GAN", section 2.2) is a chain of convolutions, zero-padded at
both ends, so a sample depends on a fixed number of latent frames around its own. Each window is
decoded with that many frames more on each side, and the samples that they give are dropped. At the
ends of the latent there are no more frames, and the padding is that of one run over the whole. This
module does not know where the latent comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, prod
from typing import Any

import torch
from torch import Tensor
from torch.nn import Conv1d, ConvTranspose1d
from torch.nn.utils import parametrize

from voiceloop.types import Pcm

FIRST, LARGEST = 20, 160
"""Frames of the first window and of the largest: each is twice the one before. The first sounds
soon; the others cost less for their context, and are the longest that a step should take."""


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


def windows(
    frames: int, *, first: int = FIRST, largest: int = LARGEST
) -> Iterator[tuple[int, int]]:
    """Cut `frames` into growing windows (start, end); a last one under half a size is not cut."""
    start, size = 0, first
    while start < frames:
        end = start + size if frames - start >= 1.5 * size else frames
        yield start, end
        start, size = end, min(2 * size, largest)


class Vocoder:
    """A decoder of Coqui TTS, whose weights are taken as they are from now on."""

    def __init__(self, decoder: Any) -> None:
        fix_weights(decoder)
        self._decoder = decoder
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
        frames = latent.shape[-1]
        begin = max(0, start - self._before)
        pcm = self._decoder(latent[:, :, begin : end + self.after], g=condition)[0, 0]
        # A decoder may give a sample or so beyond its last frame; it belongs to the end.
        stop = None if end == frames else (end - begin) * self.hop
        return pcm[(start - begin) * self.hop : stop].float().cpu().numpy()


def fix_weights(model: torch.nn.Module) -> None:
    """Replace weights that are computed anew in every pass (weight norm) by what they come to."""
    for module in list(model.modules()):
        if parametrize.is_parametrized(module):
            for name in list(module.parametrizations):  # pyright: ignore[reportArgumentType]
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)
