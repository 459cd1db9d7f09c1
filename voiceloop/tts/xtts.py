"""Speech by XTTS of Coqui TTS: the first samples come before the later tokens are generated.

A GPT generates the tokens of a clause's sound, several in each step. Its hidden states at the
tokens are stretched to frames. A HiFi-GAN decodes the frames to samples, in growing windows. A
window waits for the tokens on which its last samples depend. So the joined windows have the same
samples as one decode of the whole. The tokens are drawn with a seed from the text, so the same
clause always sounds the same. This module knows neither how a decoder is divided into windows nor
how a voice is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.engines import Steps
from voiceloop.errors import AudioError, ConfigError, EngineError
from voiceloop.tts.delivery import PacedWords, deliver, fitting, nothing, sayable
from voiceloop.tts.errors import require
from voiceloop.tts.vits import LENGTHS, ClauseNoise, Vocoder, fix_weights
from voiceloop.types import Clause, Pcm, SpeechChunk

STEP = 10
"""Maximum number of tokens that one step generates. A token stands for about 46 ms of sound."""
FIRST, LARGEST = 10, 40
"""Number of tokens after which the first window is decoded, and the maximum for later windows. The
number doubles with each window."""
LANGUAGE = "en"
"""Language of a voice whose name gives no language."""
LEAST_S, MOST_S = 3.0, 30.0
"""Minimum length in seconds of a recording from which a voice is made. Only the first `MOST_S`
seconds of a longer recording are used."""
GPT_RATE, ENCODER_RATE = 22_050, 16_000
"""Sample rates in hertz at which the GPT and the speaker encoder take a recording."""
SOUND_FILES = (".wav", ".flac", ".ogg", ".mp3")


@dataclass(frozen=True, slots=True)
class SpeakerLatents:
    """The inputs that describe a voice to the two models. They are computed once."""

    latent: Tensor
    """Input of the GPT, [1, 32, channels]: how the voice speaks."""
    embedding: Tensor
    """Input of the decoder, [1, channels, 1]: how the voice sounds."""


class Xtts:
    """XTTS as an `engines.Tts`. A step generates up to `STEP` tokens. If they complete a window,
    the step decodes it.

    A voice is a speaker of the model, and may have a language after it: `Claribel Dervla@de`.
    """

    paces = False

    def __init__(
        self, name: str, model: Any, device: torch.device, voice: str = "", speed: float = 1.0
    ) -> None:
        """Use `model`, an `Xtts`, and change it. `voice` is a speaker or the path of a recording,
        with or without `@` and a language; empty means the first speaker.

        Raises ConfigError for a voice that does not exist, AudioError for a recording that is of no
        use, and EngineError for a language that needs another package.
        """
        self.name = f"coqui {name}"
        config = model.config
        self.rate = int(config.model_args.output_sample_rate)
        self._device = device
        fix_weights(model)
        model.to(device)
        self._gpt = model.gpt
        self._tokenizer = model.tokenizer
        decoder = model.hifigan_decoder.waveform_decoder
        self._vocoder = Vocoder(decoder, LENGTHS.get(device.type, ()))
        self._stretch = _Stretch(config.model_args, speed)
        self._languages: Sequence[str] = config.languages
        self._most = int(config.model_args.gpt_max_text_tokens)
        self._sampling = {
            "do_sample": True,
            "temperature": float(config.temperature),
            "top_k": int(config.top_k),
            "top_p": float(config.top_p),
            "repetition_penalty": float(config.repetition_penalty),
        }
        self._speakers = _speakers(model.speaker_manager, device)
        speaker, language = _split_voice(voice)
        if _is_recording(speaker) and speaker not in self._speakers:
            path = Path(speaker).expanduser()
            speaker = path.stem
            self._speakers = {**self._speakers, speaker: _from_recording(model, path)}
        speaker = speaker or next(iter(self._speakers), "")
        self.voice = speaker if language == LANGUAGE else f"{speaker}@{language}"
        self.check_voice(self.voice)

    def voices(self) -> Sequence[str]:
        """Return the model's speakers, and the name of the recording if the configured voice is
        one. Each of them speaks every language."""
        return sorted(self._speakers)

    def check_voice(self, name: str) -> None:
        """Raise ConfigError for an unknown speaker or language, EngineError if the language needs
        another package."""
        speaker, language = _split_voice(name)
        known = self.voices()
        if not known:
            raise ConfigError(
                f"{self.name} has no speakers of its own",
                "set tts.voice to a recording of somebody who agrees to it: me.wav",
            )
        require(speaker, known, self.name, "speaker")
        if language not in self._languages:
            raise ConfigError(
                f"{self.name} does not speak '{language}'",
                f"choose one of: {', '.join(self._languages)}",
            )
        try:
            self._tokenizer.encode("a", lang=language)
        except ImportError as error:
            raise EngineError(f"{self.name} cannot read '{language}' here: {error}") from error

    def language(self, voice: str | None = None) -> str:
        """Return the code of the language that a voice speaks."""
        return _split_voice(self.voice if voice is None else voice)[1]

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Speak a clause in chunks. A clause with nothing to say gives one chunk without audio."""
        del speed
        speaker, language = _split_voice(self.voice if voice is None else voice)
        text = sayable(clause)
        parts = fitting(text, lambda part: self._ids(part, language))
        if not parts:
            yield nothing(clause, self.rate)
            return
        noise = ClauseNoise(text, self._device)
        pieces = chain.from_iterable(
            self._pieces(ids, self._speakers[speaker], noise, final=ids is parts[-1])
            for ids in parts
        )
        words = PacedWords(clause.spoken, clause.spans, self.rate, self._stretch.speed)
        yield from deliver(clause, pieces, words, self.rate, self._stretch.speed)

    def _ids(self, text: str, language: str) -> list[int] | None:
        """Return the token ids of `text`, empty if it has no letter or digit that the model knows.
        None if the model cannot say it at once."""
        if len(text) > self._tokenizer.char_limits.get(language.partition("-")[0], 250):
            return None
        try:
            ids = self._tokenizer.encode(text.lower(), lang=language)
        except (ArithmeticError, NotImplementedError, ValueError):
            return None  # for example a number that the library cannot put into words
        if len(ids) >= self._most:
            return None
        # The first token is the language.
        return ids if any(map(str.isalnum, self._tokenizer.decode(ids[1:]))) else []

    def _pieces(
        self, ids: list[int], speaker: SpeakerLatents, noise: ClauseNoise, *, final: bool
    ) -> Iterator[tuple[Pcm, bool]]:
        """Yield samples of a part once no later token can change them, each time with a flag that
        marks the clause's last samples. `final` is true for the clause's last part."""
        generated, prefix = self._generate(ids, speaker)
        latents: list[Tensor] = []
        size, decoded, start, over = FIRST, 0, 0, False
        while not over:
            with noise.drawing(), torch.inference_mode():
                # Another clause may have replaced the prompt since the last step.
                self._gpt.gpt_inference.store_prefix_emb(prefix)
                new = [latent for _, latent in islice(generated, STEP)]
            latents += new
            over = len(new) < STEP
            if not over and len(latents) - decoded < size:
                yield silence(0), False
                continue
            frames, certain = self._stretch(latents)
            length = frames.shape[-1]
            end = length if over else max(start, certain - self._vocoder.after)
            pcm = self._vocoder.decode(frames, start, end, speaker.embedding)
            start, decoded, size = end, len(latents), min(2 * size, LARGEST)
            yield pcm, over and final

    @torch.inference_mode()
    def _generate(self, ids: list[int], speaker: SpeakerLatents) -> tuple[Iterator[Any], Tensor]:
        """Return the GPT's tokens with hidden states [1, channels], and the prompt's embeddings."""
        text = torch.tensor([ids], device=self._device)
        prompt = self._gpt.compute_embeddings(speaker.latent, text)
        generated = self._gpt.get_generator(
            fake_inputs=prompt,
            num_beams=1,
            num_return_sequences=1,
            output_attentions=False,
            output_hidden_states=True,
            return_dict_in_generate=True,
            **self._sampling,
        )
        return generated, self._gpt.gpt_inference.cached_prefix_emb


class _Stretch:
    """A function from the GPT's hidden states to the decoder's frames, as in `HifiDecoder`."""

    def __init__(self, args: Any, speed: float) -> None:
        self.speed = speed
        scales = (
            1 / speed,
            args.gpt_code_stride_len / args.output_hop_length,
            args.output_sample_rate / args.input_sample_rate,
        )
        self._scales = [scale for scale in scales if scale != 1]

    def __call__(self, latents: Sequence[Tensor]) -> tuple[Tensor, int]:
        """Return the frames [1, channels, frames] for `latents`, each [1, channels], and the number
        of frames that more latents cannot change."""
        frames = torch.cat(list(latents)).T[None]
        certain = len(latents)
        for scale in self._scales:
            if frames.shape[-1] * scale < 1:  # a single token at a high speed gives no frame
                continue
            frames = interpolate(frames, scale_factor=[scale], mode="linear")
            # Frame i is interpolated from the two inputs next to (i + 1/2) / scale - 1/2.
            certain = max(0, floor((certain - 1) * scale))
        return frames, certain


def _split_voice(voice: str) -> tuple[str, str]:
    """Split a voice into speaker and language."""
    speaker, at, language = voice.rpartition("@")
    return (speaker, language) if at else (voice, LANGUAGE)


def _speakers(manager: Any, device: torch.device) -> Mapping[str, SpeakerLatents]:
    """Return the speakers that come with a model, on its device."""
    return {
        name: SpeakerLatents(
            latents["gpt_cond_latent"].to(device), latents["speaker_embedding"].to(device)
        )
        for name, latents in (manager.speakers if manager else {}).items()
    }


def _is_recording(name: str) -> bool:
    return "/" in name or name.lower().endswith(SOUND_FILES)


def _from_recording(model: Any, path: Path) -> SpeakerLatents:
    """Make a voice from a recording; the model's settings decide how much of it is used.

    Raises AudioError for a file that cannot be read, or that contains too little sound.
    """
    recordings = [_read_recording(path, rate) for rate in (GPT_RATE, ENCODER_RATE)]
    seconds = len(recordings[0]) / GPT_RATE
    if seconds < LEAST_S or np.abs(recordings[0]).max() < AUDIBLE:
        what = f"{seconds:.1f} s" if seconds < LEAST_S else "only silence"
        raise AudioError(
            f"{path} holds {what}, too little to speak in that voice",
            "record six seconds or more of one person's voice",
        )
    config = model.config
    for_gpt, for_encoder = (torch.from_numpy(pcm)[None] for pcm in recordings)
    most = int(config.max_ref_len * ENCODER_RATE)
    return SpeakerLatents(
        model.get_gpt_cond_latents(
            for_gpt,
            GPT_RATE,
            length=config.gpt_cond_len,
            chunk_length=config.gpt_cond_chunk_len,
        ),
        model.get_speaker_embedding(for_encoder[:, :most], ENCODER_RATE),
    )


def _read_recording(path: Path, rate: int) -> Pcm:
    with AudioFile(path, rate) as file:
        return np.concatenate(list(file.blocks()))[: int(MOST_S * rate)]
