"""Speech by the VITS voices of Coqui TTS: the first samples come before the last are computed.

A clause is encoded in one step: text encoder, durations and flow. The resulting latent is decoded
to audio in growing windows, one step each. The noise is seeded by the text, so the same clause
always sounds the same.

The joined samples of a HiFi-GAN decoder in windows equal those of one run over all. The decoder
(Kong et al. 2020, "HiFi-GAN", section 2.2) is a chain of convolutions with zero padding at both
ends. So a sample depends on a fixed number of latent frames around its own. Each window is decoded
with that many more frames on each side, and the samples of these frames are dropped. At the ends of
the latent there are no more frames. There the decoder pads with zeros, as it does in one run over
the whole latent. `xtts` uses the same decoder.
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

from voiceloop.engines import Steps
from voiceloop.errors import ConfigError
from voiceloop.settings.schema import suggestion
from voiceloop.tts.delivery import (
    TimedWords,
    deliver,
    groups_of,
    nothing,
    sayable,
    windows,
    word_times,
)
from voiceloop.types import Clause, Pcm, SpeechChunk, SpokenWord

SINGLE = "default"
"""Name for the voice of a model that has a single speaker without a name."""


class _Tap(torch.nn.Module):
    """A stand-in for the decoder inside the model, because the decoder runs later, in windows. It
    keeps the speaker condition and returns the latent unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.condition: Tensor | None = None

    def forward(self, latent: Tensor, g: Tensor | None = None) -> Tensor:
        self.condition = g
        return latent


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The decoder's input for a clause, and the times of its words."""

    latent: Tensor
    """Shape [1, channels, frames]."""
    condition: Tensor | None
    """Speaker condition [1, channels, 1]; None for a model with one speaker."""
    words: tuple[SpokenWord, ...]
    """Words of the clause, timed in samples of the decoder."""


class Vits:
    """A VITS voice as an `engines.Tts`. Encoding is one step, and so is each window."""

    paces = False

    def __init__(
        self, name: str, model: Any, device: torch.device, voice: str = "", speed: float = 1.0
    ) -> None:
        """Use `model`, a `Vits`, and change it. `voice` is a speaker; empty means the first one.

        Raises ConfigError for a speaker that does not exist.
        """
        self.name = f"coqui {name}"
        self.rate = int(model.config.audio.sample_rate)
        self._device = device
        self._speakers: dict[str, int] = (
            model.speaker_manager.name_to_id if model.speaker_manager else {}
        )
        self.voice = voice or next(iter(self._speakers), SINGLE)
        self.check_voice(self.voice)
        self._language = str(model.language_manager.language_names[0])
        fix_weights(model)
        model.to(self._device)
        model.length_scale /= speed
        self._speed = speed
        self._vocoder = Vocoder(model.waveform_decoder, LENGTHS.get(device.type, ()))
        self._tap = model.waveform_decoder = _Tap()
        self._model = model

    def voices(self) -> Sequence[str]:
        """Return the model's speakers."""
        return sorted(self._speakers) or [SINGLE]

    def check_voice(self, name: str) -> None:
        """Raise ConfigError for a speaker that the model does not have."""
        known = self.voices()
        if name not in known:
            raise ConfigError(
                f"{self.name} has no speaker called '{name}'",
                suggestion(name, known)
                if self._speakers
                else "it has only one: leave out tts.voice",
            )

    def language(self, voice: str | None = None) -> str:
        """Return the code of the language, which is the same for all speakers."""
        del voice
        return self._language

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Speak a clause in chunks. A clause with nothing to say gives one chunk without audio."""
        del speed
        encoded = self._encode(clause, self.voice if voice is None else voice)
        if encoded is None:
            yield nothing(clause, self.rate)
            return
        yield None
        words = TimedWords(encoded.words)
        yield from deliver(clause, self._pieces(encoded), words, self.rate, self._speed)

    def _pieces(self, encoded: _Encoded) -> Iterator[tuple[Pcm, bool]]:
        latent = encoded.latent
        for start, end in windows(latent.shape[-1]):
            pcm = self._vocoder.decode(latent, start, end, encoded.condition)
            yield pcm, end == latent.shape[-1]

    @torch.inference_mode()
    def _encode(self, clause: Clause, voice: str) -> _Encoded | None:
        """Return the decoder's input; None if the clause has nothing that can be said."""
        text = sayable(clause)
        if not text:
            return None
        ids = self._model.tokenizer.text_to_ids(text, language=self._language)
        symbols = self._symbols(ids)
        if not groups_of(symbols):
            return None
        with ClauseNoise(text, self._device).drawing():
            given = {"speaker_ids": self._speaker_ids(voice)}
            outputs = self._model.inference(torch.tensor([ids], device=self._device), given)
        latent = outputs["model_outputs"]
        # The encoder of a voice may have a lower sample rate than its decoder.
        hop = self._vocoder.hop * outputs["y_mask"].shape[-1] / outputs["alignments"].shape[-1]
        ends = outputs["durations"].flatten().cumsum(0) * hop
        words = word_times(clause.spoken, clause.spans, symbols, ends.tolist())
        return _Encoded(latent, self._tap.condition, words)

    def _speaker_ids(self, voice: str) -> Tensor | None:
        """Return the speaker in the form that the model takes; None if it has only one speaker."""
        speaker = self._speakers.get(voice)
        return None if speaker is None else torch.tensor([speaker], device=self._device)

    def _symbols(self, ids: Sequence[int]) -> list[str]:
        """Return the character of each token; empty for blanks and for the tokens at both ends."""
        known = self._model.tokenizer.characters
        silent = {known.blank_id, known.bos_id, known.eos_id}
        return ["" if token in silent else known.id_to_char(token) for token in ids]


# ---- the decoder in windows


@dataclass(frozen=True, slots=True)
class Geometry:
    """On which frames the samples of a decoder depend."""

    hop: int
    """Samples per frame."""
    before: int
    """Number of frames before a frame on which its samples depend."""
    after: int
    """Number of frames after it on which they depend."""


def geometry(decoder: Any) -> Geometry:
    """Compute the geometry of a `HifiganGenerator` of Coqui TTS from its convolutions."""
    ups: Sequence[ConvTranspose1d] = list(decoder.ups)
    parallel = len(decoder.resblocks) // len(ups)
    hop, edge = prod(up.stride[0] for up in ups), _reach(decoder.conv_post)
    # The inputs on which a frame's samples depend, from the last layer to the first.
    first, last = -edge, hop - 1 + edge
    for i, up in reversed([*enumerate(ups)]):
        reach = max(map(_reach, decoder.resblocks[i * parallel : (i + 1) * parallel]))
        stride, padding = up.stride[0], int(up.padding[0])
        # Sample n of a transposed convolution is made of the inputs m for which
        # 0 <= n + padding - m * stride < kernel.
        first = ceil((first - reach + padding - up.kernel_size[0] + 1) / stride)
        last = floor((last + reach + padding) / stride)
    edge = _reach(decoder.conv_pre)
    return Geometry(hop, edge - first, edge + last)


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
        self._before, self.after = shape.before, shape.after
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
