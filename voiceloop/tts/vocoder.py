"""The decoder of Coqui's voices in windows, and their random numbers.

The joined samples of a HiFi-GAN decoder in windows equal those of one run over all. The decoder
(Kong et al. 2020, "HiFi-GAN", section 2.2) is a chain of convolutions with zero padding at both
ends. So a sample depends on a fixed number of latent frames around its own. Each window is decoded
with that many more frames on each side, and the samples of these frames are dropped. At the ends of
the latent there are no more frames. There the decoder pads with zeros, as it does in one run over
the whole latent. This module does not know where the latent comes from. Equal texts get equal
random numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    """A transposed convolution, and the residual blocks after it."""

    kernel: int
    stride: int
    padding: int
    reach: int
    """Number of samples that the widest residual block sees on each side of the current sample."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The sizes in a decoder from which follows on which frames a sample depends."""

    before: int
    """Number of frames that the first convolution sees on each side of the current frame."""
    upsamplings: tuple[Upsampling, ...]
    after: int
    """Number of samples that the last convolution sees on each side of the current sample."""

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return prod(upsampling.stride for upsampling in self.upsamplings)

    def context(self) -> tuple[int, int]:
        """Return (before, after): the samples of a frame depend on the frame, on `before` frames
        before it, and on `after` frames after it."""
        first, last = -self.after, self.hop - 1 + self.after
        for up in reversed(self.upsamplings):
            # Sample n of a transposed convolution is made of the inputs m for which
            # 0 <= n + padding - m * stride < kernel.
            first = ceil((first - up.reach + up.padding - up.kernel + 1) / up.stride)
            last = floor((last + up.reach + up.padding) / up.stride)
        return self.before - first, self.before + last


def geometry(decoder: Any) -> Geometry:
    """Read the geometry of a `HifiganGenerator` of Coqui TTS."""
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
    """Return how many samples a chain of convolutions sees on each side of the current sample."""
    return sum(
        conv.dilation[0] * (conv.kernel_size[0] - 1) // 2
        for conv in chain.modules()
        if isinstance(conv, Conv1d)
    )


LENGTHS = {"cuda": (40, 72, 112, 192, 272)}
"""Lengths in frames to which a decoder's inputs are padded, by type of device. A GPU plans each
convolution anew for every new length, so few lengths are used. A CPU plans nothing, and padding
would only add work. The lengths fit the windows of the module `windows`."""


def padding(given: int, lengths: Sequence[int], *, first: bool, last: bool) -> tuple[int, int]:
    """Return how many frames to add before and after `given` frames to reach one of the `lengths`.

    `first` says whether the given frames begin the latent, and `last` whether they end it. At the
    beginning and the end of the latent no frames may be added, because the decoder's own zero
    padding is needed there. So frames are added after the given frames if these do not end the
    latent, and otherwise before them if they do not begin it. No frames are added if no length is
    large enough.
    """
    more = next((length for length in lengths if length >= given), given) - given
    if not last:
        return 0, more
    return (0, 0) if first else (more, 0)


class Vocoder:
    """A decoder of Coqui TTS with fixed weights, which runs in windows."""

    def __init__(self, decoder: Any, lengths: Sequence[int] = ()) -> None:
        """Fix the weights of `decoder`. Pad its inputs to one of `lengths` if possible."""
        fix_weights(decoder)
        self._decoder = decoder
        self._lengths = lengths
        self._planned = False
        """True once the decoder has run with all of the `lengths`."""
        shape = geometry(decoder)
        self._before, self.after = shape.context()
        """Frames before and after a window on which its samples depend."""
        self.hop = shape.hop
        """Samples per frame."""

    @torch.inference_mode()
    def decode(self, latent: Tensor, start: int, end: int, condition: Tensor | None = None) -> Pcm:
        """Return the samples of the frames from `start` to `end` of `latent` [1, channels, frames].

        `condition` [1, channels, 1] describes the speaker, if there are several.
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
        # A decoder may give a few samples after its last frame. The last window includes them.
        stop = None if end == frames else (end - begin + left) * self.hop
        return pcm[(start - begin + left) * self.hop : stop].float().cpu().numpy()

    def _plan(self, latent: Tensor, condition: Tensor | None) -> None:
        """Run the decoder with inputs of all `lengths` before the first window, so that no window
        waits for a plan. Plans are kept by thread, so this runs in the thread of the windows."""
        if not self._planned:
            for length in self._lengths:
                self._decoder(latent.new_zeros(1, latent.shape[1], length), g=condition)
        self._planned = True


def fix_weights(model: torch.nn.Module) -> None:
    """Replace weights that are computed anew in every pass (weight norm) by their values."""
    for module in list(model.modules()):
        if parametrize.is_parametrized(module):
            for name in list(module.parametrizations):  # pyright: ignore[reportArgumentType]
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)


class ClauseNoise:
    """The random state of one clause, seeded by its text.

    Libraries draw from torch's global generators. `drawing` sets the generators to this state for
    one step, and restores them afterwards. So other clauses and other code that draws from the
    generators are not affected.
    """

    def __init__(self, text: str, device: torch.device) -> None:
        self._seed = zlib.crc32(text.encode())
        self._cuda = [device] if device.type == "cuda" else []
        self._left: list[torch.Tensor] = []

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Set the random generators for one step of the clause, while the context lasts. The step
        continues from the state in which the clause's last step ended."""
        with torch.random.fork_rng(self._cuda):
            if self._left:
                torch.set_rng_state(self._left[0])
                for device, state in zip(self._cuda, self._left[1:], strict=True):
                    torch.cuda.set_rng_state(state, device)
            else:
                torch.manual_seed(self._seed)
            yield
            self._left = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, self._cuda)]
