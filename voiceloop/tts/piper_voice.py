"""A Piper voice: text to phonemes, phonemes to a latent, the latent to samples in windows.

The voice consists of two graphs, which `catalog.piper` makes from the published graph. The noise
for the graphs is drawn here, seeded by the text, so the same text always sounds the same. This
module does not know which voices exist.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from voiceloop.catalog.piper import FIRST_HALF, VOCODER, VOICE
from voiceloop.errors import ModelCorrupt, ModelNotFound, VoiceloopError
from voiceloop.foreign import parsed
from voiceloop.tts.delivery import groups_of, windows, word_times
from voiceloop.tts.espeak_ng import espeak_ng, phonemes
from voiceloop.tts.graphs import session
from voiceloop.types import Clause, Pcm, SpokenWord

BEGIN, END, PAD = "^", "$", "_"
"""Symbols that stand at the beginning of a text, at its end, and between its other symbols."""
NOISE_FRAMES = 1024
"""Frames of noise that are drawn once for a voice. Each clause reads them as a ring buffer, and the
text of the clause decides where the reading begins."""


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a voice, from the JSON file beside it."""

    name: str
    folder: Path
    rate: int
    language: str
    """Name of the espeak-ng voice (`en-us`), or the language code if the voice reads letters."""
    phonemes: bool
    """True if the voice reads phonemes, False if it reads letters."""
    ids: Mapping[str, Sequence[int]]
    """Token ids of each symbol."""
    noise: float
    pace: float
    text_noise: float
    speakers: Mapping[str, int]
    """Ids of the speakers by name; empty if there is only one."""

    @property
    def voices(self) -> list[str]:
        """The name of the only voice, or `name/speaker` for each speaker."""
        return [f"{self.name}/{speaker}" for speaker in self.speakers] or [self.name]


def describe(folder: Path, name: str) -> Description:
    """Read the description of a voice. Raises ModelNotFound and ModelCorrupt."""
    if not all((folder / file).is_file() for file in (FIRST_HALF, VOCODER, VOICE)):
        raise ModelNotFound(
            f"there is no voice of Piper in {folder}",
            "name a voice's .onnx file, with its .onnx.json beside it",
        )
    with _readable(name):
        said: Any = parsed((folder / VOICE).read_text(encoding="utf-8"))
        phonemes = said.get("phoneme_type", "espeak") == "espeak"
        code = str(said.get("language", {}).get("code", "")).replace("_", "-").lower()
        speakers = said.get("speaker_id_map") or {}
        if not speakers and said.get("num_speakers", 1) > 1:
            speakers = {str(number): number for number in range(said["num_speakers"])}
        inference = said.get("inference", {})
        described = Description(
            name,
            folder,
            int(said["audio"]["sample_rate"]),
            str(said["espeak"]["voice"]) if phonemes else code,
            phonemes,
            {symbol: [int(one) for one in ids] for symbol, ids in said["phoneme_id_map"].items()},
            float(inference.get("noise_scale", 0.667)),
            float(inference.get("length_scale", 1.0)),
            float(inference.get("noise_w", 0.8)),
            {str(speaker): int(number) for speaker, number in speakers.items()},
        )
        if not {BEGIN, END, PAD} <= described.ids.keys():
            raise ValueError("it has no symbols for the ends of a text")
    if phonemes:
        espeak_ng().identifier(described.language)
    return described


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vocoder's input for a clause, and the times of its words."""

    latent: np.ndarray[Any, np.dtype[np.float32]]
    """Shape [1, channels, frames]."""
    words: tuple[SpokenWord, ...]
    """Words of the clause, timed in samples of the vocoder."""


class PiperVoice:
    """A loaded voice, for one thread at a time."""

    def __init__(self, described: Description, opened: Callable[[Path], Any] = session) -> None:
        """Load the voice; `opened` opens a graph. Raises ModelCorrupt, and what `opened` raises."""
        self.described = described
        with _readable(described.name):
            self._encoder = opened(described.folder / FIRST_HALF)
            self._vocoder = opened(described.folder / VOCODER)
            noted = self._vocoder.get_modelmeta().custom_metadata_map
            self._before, self._after = int(noted["before"]), int(noted["after"])
            self.hop = int(noted["hop"])
            """Samples per frame."""
            channels = int(self._vocoder.get_inputs()[0].shape[1])
        draw = np.random.default_rng(0)
        self._noise = draw.standard_normal((1, channels, NOISE_FRAMES), np.float32)

    def encode(self, clause: Clause, text: str, speaker: str, speed: float) -> Encoded | None:
        """Return the vocoder's input for `text`, the result of `sayable`. None if nothing can be
        said.

        Raises ModelCorrupt.
        """
        ids, symbols = self._read(text)
        if not groups_of(symbols):
            return None
        said = self.described
        seed = zlib.crc32(text.encode())
        inputs = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([said.noise, said.pace / speed, said.text_noise], np.float32),
            "text_noise": np.random.default_rng(seed).standard_normal((1, 2, len(ids)), np.float32),
            "noise": np.roll(self._noise, seed % NOISE_FRAMES, axis=2),
            **self._speaker(speaker),
        }
        with _readable(said.name):
            latent, durations = cast(
                "Sequence[np.ndarray[Any, np.dtype[np.float32]]]",
                self._encoder.run(["latent", "durations"], inputs),
            )
        ends = np.cumsum(durations.ravel()) * self.hop
        return Encoded(latent, word_times(clause.spoken, clause.spans, symbols, ends.tolist()))

    def decode(self, encoded: Encoded, speaker: str) -> Iterator[tuple[Pcm, bool]]:
        """Yield the samples in growing windows, each with a flag that marks the last one.

        Raises ModelCorrupt.
        """
        frames = encoded.latent.shape[-1]
        for start, end in windows(frames):
            begin = max(0, start - self._before)
            latent = encoded.latent[:, :, begin : end + self._after]
            with _readable(self.described.name):
                (pcm,) = self._vocoder.run(None, {"latent": latent, **self._speaker(speaker)})
            sound = np.ravel(cast(Pcm, pcm))
            piece = sound[(start - begin) * self.hop : (end - begin) * self.hop]
            yield np.clip(piece, -1.0, 1.0), end == frames

    def _speaker(self, name: str) -> dict[str, np.ndarray[Any, Any]]:
        speakers = self.described.speakers
        return {"sid": np.array([speakers[name]], np.int64)} if speakers else {}

    def _read(self, text: str) -> tuple[list[int], list[str]]:
        """Return the token ids of `text`, and the character of each id. The character of a silent
        id is empty."""
        known = self.described.ids
        ids, symbols = [*known[BEGIN]], [""] * len(known[BEGIN])
        for symbol in ("", *self._symbols(text)):
            of_symbol, pad = known.get(symbol, []), known[PAD]
            if of_symbol or not symbol:
                ids += [*of_symbol, *pad]
                symbols += [symbol] * len(of_symbol) + [""] * len(pad)
        return [*ids, *known[END]], [*symbols, *[""] * len(known[END])]

    def _symbols(self, text: str) -> str:
        """Return the voice's input for `text`: phonemes with the marks between them, or letters."""
        if not self.described.phonemes:
            return unicodedata.normalize("NFD", text.lower())
        return unicodedata.normalize("NFD", phonemes(text, self.described.language))


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except VoiceloopError:
        raise
    except Exception as error:  # onnxruntime's exception types are private; JSON may hold anything
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelCorrupt(
            f"the voice '{name}' is damaged: {said}", "copy it again, or pull it again"
        ) from error
