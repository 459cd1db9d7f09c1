"""Stand-ins for recogniser and voice: models of real shapes with random weights.

The recogniser reads its words from the sound, in which each word has its own level. Meanwhile a
Whisper of transformers decodes as many tokens as a trained one would. The voice is a VITS of
transformers, cut into windows like a voice of Coqui's. With random weights it is nearly silent, so
a hum is added. Both do the work of real models, but with other libraries than the program's. So
they do not show how good the program's own recogniser and voice are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    VitsConfig,
    VitsModel,
    WhisperConfig,
    WhisperForConditionalGeneration,
)
from transformers.audio_utils import mel_filter_bank

from voiceloop.asr.encoding import LogMel
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.audio.frames import SPEECH_RATE, silence
from voiceloop.engines import AsrRequest, Steps
from voiceloop.placement import BUILDING
from voiceloop.tts.delivery import PacedWords, deliver, sayable, windows
from voiceloop.tts.vits import Vocoder, fix_weights
from voiceloop.types import Clause, Pcm, SpeechChunk, Word

TURBO = WhisperConfig(
    vocab_size=51_866,
    num_mel_bins=128,
    d_model=1280,
    encoder_layers=32,
    encoder_attention_heads=20,
    encoder_ffn_dim=5120,
    decoder_layers=4,
    decoder_attention_heads=20,
    decoder_ffn_dim=5120,
)
"""The shape of Whisper large-v3-turbo."""
SMALL_WHISPER = WhisperConfig(
    vocab_size=51_866,
    d_model=64,
    encoder_layers=2,
    encoder_attention_heads=2,
    encoder_ffn_dim=128,
    decoder_layers=1,
    decoder_attention_heads=2,
    decoder_ffn_dim=128,
)
SMALL_VITS = VitsConfig(
    hidden_size=32,
    num_hidden_layers=1,
    ffn_dim=64,
    flow_size=32,
    spectrogram_bins=32,
    prior_encoder_num_flows=2,
    prior_encoder_num_wavenet_layers=1,
    upsample_initial_channel=32,
    resblock_kernel_sizes=(3,),
    resblock_dilation_sizes=((1, 3),),
)
FRAMES = 3000
"""Frames of a window of 30 seconds, which the program's Whisper always fills on a GPU."""
PROMPT, TOKENS_PER_WORD = 4, 1.4
LEVEL, STEP = 0.25, 2.0**-12
"""Word k sounds at `LEVEL + k * STEP`, which is exact in float32."""
WORD = round(0.15 * SPEECH_RATE)
"""Samples of a word."""
RATE = 24_000
"""Sample rate of the voice in hertz: that of the bench's loudspeaker."""
SYMBOL_FRAMES = 2.0
"""Factor on the durations that random weights give to symbols. Each symbol is then half as long as
a sound of a trained voice, because a blank follows each symbol."""
HUM = 0.1


class LevelVad:
    """A VAD that takes all sound but zeros for speech."""

    frame = 512

    def probability(self, pcm: Pcm) -> float:
        """Return 1 if any sample of the window is not 0, otherwise 0."""
        return float(pcm.any())

    def reset(self) -> None:
        """Do nothing: there is no state."""


def spoken(words: int) -> Pcm:
    """Return the sound of the first `words` words."""
    levels = LEVEL + STEP * np.arange(words, dtype=np.float32)
    return np.repeat(levels, WORD).astype(np.float32)


class WhisperStandIn(WindowedAsr):
    """A Whisper of random weights that reads its words from the sound."""

    name = "transformers Whisper, a stand-in"

    def __init__(
        self, shape: WhisperConfig, texts: Sequence[str], device: torch.device, dtype: torch.dtype
    ) -> None:
        """Recognise the words in `texts`, which are ordered by the level of their sound."""
        with BUILDING, device:
            model: Any = WhisperForConditionalGeneration(shape)
        self._model = model.to(dtype).eval()
        self._texts = texts
        self._device, self._dtype = device, dtype
        filters = mel_filter_bank(
            201, shape.num_mel_bins, 0.0, 8000.0, SPEECH_RATE, norm="slaney", mel_scale="slaney"
        )
        self._features = LogMel(np.ascontiguousarray(filters.T, np.float32))

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Read the words of a window. All decodes are greedy, and word times cost nothing."""
        words = self._read(request.pcm)
        self._decode(request.pcm, PROMPT + round(TOKENS_PER_WORD * len(words)))
        return words

    def _read(self, pcm: Pcm) -> list[Word]:
        """Return the words of which `pcm` has more than 80 %."""
        edges = [0, *(np.flatnonzero(np.diff(pcm)) + 1).tolist(), len(pcm)]
        words: list[Word] = []
        for start, end in pairwise(edges):
            number = round((float(pcm[start]) - LEVEL) / STEP) if end > start else -1
            if 0 <= number < len(self._texts) and end - start > 0.8 * WORD:
                words.append(Word(self._texts[number], start / SPEECH_RATE, end / SPEECH_RATE))
        return words

    @torch.inference_mode()
    def _decode(self, pcm: Pcm, tokens: int) -> list[int]:
        heard = torch.from_numpy(self._features(pcm, FRAMES)).to(self._device, self._dtype)
        encoded = self._model.model.encoder(heard.unsqueeze(0))
        ids = torch.zeros(1, PROMPT, dtype=torch.long, device=self._device)
        said: list[Tensor] = []
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        for _ in range(tokens):
            # Positional arguments, because versions of transformers name the cache differently.
            out = self._model(None, None, ids, None, encoded, cache, use_cache=True)
            ids = out.logits[:, -1:].argmax(-1)
            said.append(ids[0])
        return torch.cat(said).tolist()


class VitsStandIn:
    """A voice that works in the steps of `tts.vits`: the encoding, and then each window."""

    name = "transformers VITS, a stand-in"
    rate = RATE
    paces = False
    voice = "default"

    def __init__(self, shape: VitsConfig, device: torch.device) -> None:
        with BUILDING, device:
            model: Any = VitsModel(shape).eval()
        model.noise_scale_duration = 0.0
        model.speaking_rate = 1 / SYMBOL_FRAMES
        fix_weights(model)
        self._vocoder = Vocoder(_Renamed(model.decoder))
        model.decoder = _Latent()
        self._model = model
        self._symbols, self._device = shape.vocab_size, device

    def voices(self) -> Sequence[str]:
        """Return the only voice."""
        return [self.voice]

    def check_voice(self, name: str) -> None:
        """Accept any name: all of them mean the only voice."""

    def language(self, voice: str | None = None) -> str:
        """Return English."""
        del voice
        return "en"

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Synthesise a clause: yield None after the encoding, then the chunks."""
        del voice
        latent = self._encode(sayable(clause) or " ")
        yield None
        words = PacedWords(clause.spoken, clause.spans, RATE, 1.0)
        yield from deliver(clause, self._pieces(latent), words, RATE, 1.0)

    @torch.inference_mode()
    def _encode(self, text: str) -> Tensor:
        """Return the latent of `text`: [1, channels, frames]."""
        symbols = [1 + ord(letter) % (self._symbols - 1) for letter in text]
        ids = [0] * (2 * len(symbols) + 1)
        ids[1::2] = symbols
        return self._model(torch.tensor([ids], device=self._device)).waveform

    def _pieces(self, latent: Tensor) -> Iterator[tuple[Pcm, bool]]:
        for start, end in windows(latent.shape[-1]):
            pcm = self._vocoder.decode(latent, start, end)
            hum = HUM * np.sin(0.05 * np.arange(len(pcm)))
            yield (HUM * pcm + hum).astype(np.float32), end == latent.shape[-1]


class _Latent(torch.nn.Module):
    """A module that replaces the decoder of a model, and returns its input."""

    def forward(self, latent: Tensor, condition: Tensor | None = None) -> Tensor:
        del condition
        return latent


class _Renamed(torch.nn.Module):
    """A decoder of transformers whose parts have the names that Coqui TTS gives them."""

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.ups, self.resblocks = decoder.upsampler, decoder.resblocks
        self.conv_pre, self.conv_post = decoder.conv_pre, decoder.conv_post
        self._decoder = [decoder]  # in a list, so that torch does not register its parts twice

    def forward(self, latent: Tensor, g: Tensor | None = None) -> Tensor:
        return cast(Tensor, self._decoder[0](latent, g))


def quiet(milliseconds: float) -> Pcm:
    """Return silence at the recogniser's sample rate."""
    return silence(round(milliseconds * SPEECH_RATE / 1000))
