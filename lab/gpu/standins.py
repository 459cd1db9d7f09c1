"""Models of real shapes that stand in for what listens and speaks, made of random numbers.

What is recognised is told by the sound: each word sounds at a level of its own, while a Whisper of
transformers decodes as many tokens as there would be. What is spoken is what a VITS of transformers
makes of random weights, cut into windows as a voice of Coqui's is; it is next to nothing, so that a
hum is laid over it. Both are the work of real ones, by other libraries than the program's, and say
nothing of how well those do it.
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

from voiceloop.asr.features import LogMel
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.audio.frames import SPEECH_RATE, silence
from voiceloop.engines import AsrRequest, Steps
from voiceloop.placement import BUILDING
from voiceloop.tts.alignment import PacedWords
from voiceloop.tts.delivery import deliver
from voiceloop.tts.text import sayable
from voiceloop.tts.vocoder import Vocoder, fix_weights
from voiceloop.tts.windows import windows
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
"""Whisper large-v3-turbo."""
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
"""Of a window: the program's Whisper fills all 30 seconds on a GPU."""
PROMPT, TOKENS_PER_WORD = 4, 1.4
LEVEL, STEP = 0.25, 2.0**-12
"""Word k sounds at `LEVEL + k * STEP`, which is exact in float32."""
WORD = round(0.15 * SPEECH_RATE)
"""Samples of a word."""
RATE = 24_000
"""Hertz of the voice: that of the bench's loudspeaker."""
SYMBOL_FRAMES = 2.0
"""How many times as long as random weights would have it each symbol is spoken: as long as a voice
takes for half a sound, since there is a blank behind each."""
HUM = 0.1


class LevelVad:
    """Speech wherever there is any level."""

    frame = 512

    def probability(self, pcm: Pcm) -> float:
        """See `engines.Vad`."""
        return float(pcm.any())

    def reset(self) -> None:
        """See `engines.Vad`."""


def spoken(words: int) -> Pcm:
    """The sound of so many words."""
    levels = LEVEL + STEP * np.arange(words, dtype=np.float32)
    return np.repeat(levels, WORD).astype(np.float32)


class WhisperStandIn(WindowedAsr):
    """A Whisper of random weights that reads its words from the sound."""

    name = "transformers Whisper, a stand-in"

    def __init__(
        self, shape: WhisperConfig, texts: Sequence[str], device: torch.device, dtype: torch.dtype
    ) -> None:
        """`texts` are the words that sound, by their level."""
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
        """The words of which `pcm` holds most."""
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
            # By place: versions of transformers call the cache by different names.
            out = self._model(None, None, ids, None, encoded, cache, use_cache=True)
            ids = out.logits[:, -1:].argmax(-1)
            said.append(ids[0])
        return torch.cat(said).tolist()


class VitsStandIn:
    """Implements `engines.Tts`, in the steps of `tts.coqui`: encoding is one, and each window."""

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
        """See `engines.Tts`."""
        return [self.voice]

    def check_voice(self, name: str) -> None:
        """See `engines.Tts`; it has one voice, whatever that is called."""

    def language(self, voice: str | None = None) -> str:
        """See `engines.Tts`."""
        del voice
        return "en"

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """See `engines.Tts`."""
        del voice
        latent = self._encode(sayable(clause) or " ")
        yield None
        words = PacedWords(clause.spoken, clause.spans, RATE, 1.0)
        yield from deliver(clause, self._pieces(latent), words, RATE, 1.0)

    @torch.inference_mode()
    def _encode(self, text: str) -> Tensor:
        """[1, channels, frames]"""
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
    """Stands where the model's decoder was."""

    def forward(self, latent: Tensor, condition: Tensor | None = None) -> Tensor:
        del condition
        return latent


class _Renamed(torch.nn.Module):
    """A decoder of transformers by the names that one of Coqui TTS has."""

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.ups, self.resblocks = decoder.upsampler, decoder.resblocks
        self.conv_pre, self.conv_post = decoder.conv_pre, decoder.conv_post
        self._decoder = [decoder]  # in a list, since its parts are modules of this one already

    def forward(self, latent: Tensor, g: Tensor | None = None) -> Tensor:
        return cast(Tensor, self._decoder[0](latent, g))


def quiet(milliseconds: float) -> Pcm:
    """So much silence at the recogniser's rate."""
    return silence(round(milliseconds * SPEECH_RATE / 1000))
