"""Whisper through faster-whisper and CTranslate2, on windows no longer than they need to be.

Whisper was trained on windows of 30 seconds, and encoding one takes most of a decode's time. Here
the encoder is given the speech and a few seconds of silence; the states of more silence are made
once, when the model is loaded, and joined to those of the speech. The decoder needs them: without a
long silence it says the last phrase again, up to five times. The encoder hardly does. Where the
words that come out are unlikely or repeat themselves, a final decode is made once more from the
whole window.

A decode is one bounded call. Word times come from the cross-attention, and only where they are
asked for, since they cost a second pass of the decoder. On a GPU CTranslate2 works on a
thread and a stream of its own, of usual priority; that stream waits for none but the device's
default one, on which nothing of ours runs (`placement.own_stream`). This module knows nothing of
streams of audio and turns.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import ctranslate2
import numpy as np
import numpy.typing as npt
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer

from voiceloop.asr.agreement import normalise, repeats
from voiceloop.asr.cublas import INSTALL, load_cublas
from voiceloop.asr.features import HOP, LogMel
from voiceloop.asr.placement import whisper_device, whisper_type
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bundled import bundled
from voiceloop.catalog.names import FOLDERS, find
from voiceloop.config import AsrConfig
from voiceloop.engines import Asr
from voiceloop.errors import ConfigError, EngineError, ModelCorrupt, OutOfMemory
from voiceloop.languages import AUTO
from voiceloop.types import Pcm, Word

logger = logging.getLogger(__name__)

FULL_WINDOW_S = 30.0
"""What Whisper was trained on, and the most that its encoder takes."""
SHORT_WINDOW_S = 8.0
"""Shortest window that a model trained on full ones is given. Of 329 human and synthetic clips and
beginnings of clips, tiny.en hears 4.8 % of the words otherwise than in the full window, 6.2 % where
the window is the speech and 3 s, and no better in 10 s."""
SHORTEST_S = 0.5
"""Likewise of a model that was trained on windows of any length."""
SILENCE_S = 12.0
"""Silence behind the speech that the decoder is given. With what fills 30 s it takes a fifth more
time and hears no better; with 7 or 9 s it now and then repeats a phrase."""
QUIET = -0.75
"""Features of the silence behind speech: they are relative to the loudest sound, and this is what
they are for speech at a usual level."""
UNSURE = -0.45
"""Mean log probability of a token under which a short window is not trusted. Under -0.5 were 18 %
of 574 clips and beginnings, most of them cut off in the middle of a word (tiny.en)."""
FRAMES_PER_STATE = 2
FRAMES_PER_STEP = 20
"""Windows are encoded in lengths of whole steps of 0.2 s: the encoder's convolutions compile, and
keep for good, a kernel of some 0.2 MB for each length they have met."""
STATE_S = 0.02
"""Time from one state of the encoder to the next."""
MOST_TOKENS = 224
"""Half of the positions of Whisper's decoder: more than that is never said in a window."""
SPARE_TOKENS = 12
TOKENS_PER_S = 12
"""A decode may give this many tokens for each second of audio, and the spare ones: faster than
anyone speaks, so what stops there is a loop."""
QUIETEST = 1e-4
"""Peak under which there is nothing to hear."""
NO_SPEECH = 0.6
"""Probability of no speech at which a transcript that is itself unlikely is dropped."""
UNLIKELY = -1.0
"""Mean log probability of a token under which a transcript is unlikely."""
LOOP_TIMES, LOOP_WORDS = 4, 8
"""A phrase that ends the transcript this many times over, and fills this many words, is a loop."""
LOOP_INSIDE = re.compile(r"((?:-?[^\W\d_]){1,8}?)\1{11,}")
"""Letters within a word, a dozen times over: "o-o-o-…", to which two voices at once can lead.
Digits may repeat themselves: there are large numbers."""
SPECIALS = ("<|startoftranscript|>", "<|endoftext|>", "<|notimestamps|>")
NEEDED = ("model.bin", "config.json", "tokenizer.json")
Opener = Callable[[Path, str, str], WhisperModel]
"""Opens a folder on a device with a compute type."""


@dataclass(frozen=True, slots=True)
class _Spelling:
    """A word and its tokens."""

    text: str
    first: int
    """Index of its first token."""
    last: int
    """Index of the token after its last."""


@dataclass(frozen=True, slots=True)
class Windows:
    """How long the windows are that a model's encoder is given."""

    longest_s: float = FULL_WINDOW_S
    """More than that is never decoded at once."""
    any_length: bool = False
    """The model was trained on windows as long as what is said in them: it wants no silence, and
    nothing is gained by more."""

    def frames(self, seconds: float, pad_s: float | None) -> int:
        """Feature frames of the window for `seconds` of audio with `pad_s` of silence behind it;
        None asks for the full window."""
        if self.any_length:
            wanted = max(seconds, SHORTEST_S)
        elif pad_s is None:
            wanted = FULL_WINDOW_S
        else:
            wanted = min(max(seconds + pad_s, SHORT_WINDOW_S), FULL_WINDOW_S)
        steps = math.ceil(round(wanted * SPEECH_RATE) / HOP / FRAMES_PER_STEP)
        return steps * FRAMES_PER_STEP


def windows(folder: Path) -> Windows:
    """What the model in `folder` says of its windows in `windows.json`; most say nothing.

    Raises ModelCorrupt for a file that says something else.
    """
    path = folder / "windows.json"
    if not path.is_file():
        return Windows()
    try:
        return Windows(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ModelCorrupt(f"{path} cannot be understood: {error}", "copy it again") from error


@dataclass(frozen=True, slots=True)
class _Hypothesis:
    """What a decode of one window gave."""

    states: ctranslate2.StorageView
    tokens: list[int]
    """Of text alone."""
    words: Sequence[_Spelling]
    """What they spell, loops and all."""
    mean: float
    """Log probability of a token, on average."""
    no_speech: float
    ended: bool
    """It came to its end by itself."""


class Whisper:
    """A recogniser; implements `engines.Asr`."""

    def __init__(self, config: AsrConfig, model: WhisperModel, windows: Windows) -> None:
        self.name = f"whisper {config.model}"
        self._windows = windows
        self._beams = config.beam_size
        self._model = model
        self._log_mel = LogMel(model.feature_extractor.mel_filters)
        self.languages = _languages(model)
        self._language = config.language
        self._tokenizers = dict[str, Tokenizer]()
        self._tokenizer = self._speaks(
            self.languages[0] if config.language == AUTO else config.language
        )
        """Of the language that is decoded."""
        # A GPU encodes the full window in some milliseconds.
        self._pad_s = config.pad_s if model.model.device == "cpu" else None
        shortens = self._pad_s is not None and not windows.any_length
        self._silence = self._encoded_silence() if shortens else None
        self.counters = {"short_windows": 0, "full_windows_after": 0}
        """Final decodes in a short window, and those among them that took the full one after."""

    @property
    def max_window_s(self) -> float:
        """See `engines.Asr`."""
        return self._windows.longest_s

    def transcribe(
        self, pcm: Pcm, *, final: bool, timed: bool = False, language: str | None = None
    ) -> Sequence[Word]:
        """Words of a window at 16 kHz; see `engines.Asr`.

        A final decode uses the configured beams, a partial is greedy. Words that are `timed` have
        the times and probabilities that the cross-attention gives; others share the window evenly
        and all have the mean probability, or 0 where the decode looped or came to no end.
        ValueError for a window longer than `max_window_s`.
        """
        seconds = len(pcm) / SPEECH_RATE
        if seconds > self.max_window_s:
            raise ValueError(f"a window of {seconds:.1f} s is longer than {self.max_window_s} s")
        if float(np.abs(pcm).max(initial=0.0)) < QUIETEST:
            return ()
        asked = language or self._language
        self._tokenizer = self._speaks(self.detect_language(pcm)[0] if asked == AUTO else asked)
        beams = self._beams if final else 1
        found = self._decode(pcm, self._pad_s, beams)
        if final and self._silence is not None:
            self.counters["short_windows"] += 1
            if not self._trusted(found):
                self.counters["full_windows_after"] += 1
                found = self._decode(pcm, None, beams)
        if found.no_speech > NO_SPEECH and found.mean < UNLIKELY:
            return ()
        words = without_loop(found.words)
        if not words:
            return ()
        if timed:
            tokens = found.tokens[: words[-1].last]
            return self._timed(found.states, tokens, words, len(pcm))
        step = seconds / len(words)
        looped = not found.ended or len(words) < len(found.words)
        probability = 0.0 if looped else math.exp(found.mean)
        return [
            Word(word.text, i * step, (i + 1) * step, probability) for i, word in enumerate(words)
        ]

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        """See `engines.Asr`; as much of `pcm` counts as a window holds.

        ConfigError where the model's folder does not say which of its tokens are languages.
        """
        if not self._model.model.is_multilingual:
            return self.languages[0], 1.0
        heard = pcm[: int(self.max_window_s * SPEECH_RATE)]
        frames = self._windows.frames(len(heard) / SPEECH_RATE, self._pad_s)
        (found,) = self._model.model.detect_language(self._encode(heard, frames))
        for token, probability in found:  # the most probable one first
            if (code := token[2:-2]) in self.languages:
                return code, probability
        raise ConfigError(
            f"{self.name} cannot detect languages", "name the one that is spoken: asr.language"
        )

    def _speaks(self, language: str) -> Tokenizer:
        """The tokenizer of one of the `languages`."""
        if language not in self._tokenizers:
            self._tokenizers[language] = Tokenizer(
                self._model.hf_tokenizer,
                self._model.model.is_multilingual,
                task="transcribe",
                language=language,
            )
        return self._tokenizers[language]

    def _decode(self, pcm: Pcm, pad_s: float | None, beams: int) -> _Hypothesis:
        seconds = len(pcm) / SPEECH_RATE
        states = self._encode(pcm, self._windows.frames(seconds, pad_s))
        most = min(SPARE_TOKENS + math.ceil(TOKENS_PER_S * seconds), MOST_TOKENS)
        (result,) = self._model.model.generate(
            states,
            [[*self._tokenizer.sot_sequence, self._tokenizer.no_timestamps]],
            beam_size=beams,
            max_length=2 * most,  # CTranslate2 gives half of it at most
            return_scores=True,
            return_no_speech_prob=True,
        )
        given = result.sequences_ids[0]
        tokens = [token for token in given if token < self._tokenizer.eot]
        # CTranslate2 divides by the number of tokens, the end excluded.
        mean = result.scores[0] * len(tokens) / (len(tokens) + 1)
        words, ended = self._spell(tokens), len(given) < most
        return _Hypothesis(states, tokens, words, mean, result.no_speech_prob, ended)

    def _encode(self, pcm: Pcm, frames: int) -> ctranslate2.StorageView:
        """States of `pcm` in a window of `frames`, and those of the silence after it."""
        # CTranslate2 would take as many states as there are mel bands for features, and encode
        # them once more: whatever is said in just 1.6 s would be lost.
        mels = len(self._model.feature_extractor.mel_filters)
        frames += FRAMES_PER_STATE * (frames == mels * FRAMES_PER_STATE)
        states = self._model.encode(self._log_mel(pcm, frames))
        if self._silence is None:
            return states
        heard = np.asarray(states)
        whole = math.ceil((len(pcm) / SPEECH_RATE + SILENCE_S) / STATE_S)
        silence = self._silence[:, heard.shape[1] : whole]
        if not silence.size:
            return states
        return ctranslate2.StorageView.from_array(np.concatenate((heard, silence), axis=1))

    def _encoded_silence(self) -> npt.NDArray[np.float32]:
        """States of a full window in which nothing is heard: [1, states, width]."""
        mels = len(self._model.feature_extractor.mel_filters)
        frames = self._windows.frames(FULL_WINDOW_S, None)
        return np.array(self._model.encode(np.full((mels, frames), QUIET, np.float32)))

    def _trusted(self, found: _Hypothesis) -> bool:
        """Whether the full window would hardly give anything else."""
        return (
            found.ended
            and found.mean >= UNSURE
            and not repeats([word.text for word in found.words])
        )

    def _spell(self, tokens: list[int]) -> list[_Spelling]:
        """Tokens joined to words at the spaces between them."""
        words: list[_Spelling] = []
        pieces, groups = self._tokenizer.split_to_word_tokens(tokens)
        last = 0
        for piece, group in zip(pieces, groups, strict=True):
            first, last = last, last + len(group)
            joins = words and not piece.startswith(" ")
            text = words[-1].text + piece if joins else piece
            if joins:
                first = words.pop().first
            words.append(_Spelling(text, first, last))
        return [
            _Spelling(word.text.strip(), word.first, word.last)
            for word in words
            if word.text.strip()
        ]

    def _timed(
        self,
        states: ctranslate2.StorageView,
        tokens: list[int],
        words: Sequence[_Spelling],
        samples: int,
    ) -> list[Word]:
        """Words with the times at which the decoder's attention moves on to them."""
        heard = min(math.ceil(samples / HOP), int(states.shape[1]) * FRAMES_PER_STATE)
        (found,) = self._model.model.align(states, self._tokenizer.sot_sequence, [tokens], heard)
        begins = np.full(len(tokens) + 1, np.inf)
        for token, state in found.alignments:
            begins[token] = min(begins[token], state * STATE_S)
        begins[-1] = min(begins[-1], samples / SPEECH_RATE)
        probabilities = np.asarray(found.text_token_probs)
        return [
            Word(
                word.text,
                float(begins[word.first]),
                float(begins[word.last]),
                float(probabilities[word.first : word.last].mean()),
            )
            for word in words
        ]


def without_loop(words: Sequence[_Spelling]) -> Sequence[_Spelling]:
    """The words, with a phrase that repeats itself to the end said only once, and likewise letters
    inside a word."""
    words = [replace(word, text=LOOP_INSIDE.sub(r"\1", word.text)) for word in words]
    keys = [normalise(word.text) for word in words]
    for length in range(1, len(keys) // LOOP_TIMES + 1):
        times = 1
        while keys[-length:] == keys[-length * (times + 1) : -length * times]:
            times += 1
        if times >= LOOP_TIMES and times * length >= LOOP_WORDS:
            return words[: len(words) - length * (times - 1)]
    return words


def whisper(config: AsrConfig) -> Asr:
    """Entry point of `voiceloop.asr`: load `config.model`.

    Raises what `catalog.names.find` raises, ModelCorrupt, OutOfMemory, or ConfigError for a
    language that the model does not know.
    """
    starter = config.model == "starter"
    folder = bundled("models/starter/asr") if starter else find(config.model, "asr")
    model = load(folder, config)
    known = _languages(model)
    if config.language not in known and (config.language != AUTO or not known):
        raise ConfigError(
            f"the model {config.model} does not know the language '{config.language}'",
            "give a two-letter code such as en, and a model of many languages such as base",
        )
    return Whisper(config, model, windows(folder))


def open_model(folder: Path, device: str, compute_type: str) -> WhisperModel:
    """Load a folder's model and prove by a short encode that its device works."""
    model = WhisperModel(
        str(folder), device=device, compute_type=compute_type, local_files_only=True
    )
    lacking = [token for token in SPECIALS if model.hf_tokenizer.token_to_id(token) is None]
    if lacking:
        raise ValueError(f"its tokenizer lacks {', '.join(lacking)}")
    mels = len(model.feature_extractor.mel_filters)
    model.encode(np.zeros((mels, 2 * FRAMES_PER_STATE), np.float32))
    return model


def load(
    folder: Path,
    config: AsrConfig,
    opener: Opener = open_model,
    libraries: Callable[[], bool] = load_cublas,
) -> WhisperModel:
    """The model in `folder`; by `auto` on the GPU if it works there and else on the CPU.

    `libraries` makes those be found that CTranslate2 needs there, if they are there.
    """
    missing = [file for file in NEEDED if not (folder / file).is_file()]
    if missing:
        raise ModelCorrupt(
            f"{folder} is no Whisper model: {', '.join(missing)} missing", FOLDERS["asr"]
        )
    device = whisper_device(config.device)
    compute_type = whisper_type(config.compute_type, device)
    if device == "cuda":
        complete = libraries()
        try:
            return opener(folder, device, compute_type)
        except (RuntimeError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            if "out of memory" in reason:
                raise OutOfMemory(
                    f"{config.model} does not fit into the GPU's memory",
                    "choose a smaller model, or --asr.device cpu",
                ) from error
            if config.device == "cuda":
                remedy = "set asr.device to auto or cpu"
                raise EngineError(
                    f"recognition cannot run on the GPU: {reason}",
                    remedy if complete else f"{INSTALL}, or {remedy}",
                ) from error
            remedy = "" if complete else f" ({INSTALL})"
            logger.warning(
                "recognition runs on the CPU, the GPU does not work: %s%s", reason, remedy
            )
            compute_type = "int8"
    try:
        return opener(folder, "cpu", compute_type)
    except Exception as error:  # CTranslate2 and tokenizers raise bare exceptions
        reason = str(error).strip().partition("\n")[0]
        raise ModelCorrupt(
            f"the model in {folder} cannot be loaded: {reason}", FOLDERS["asr"]
        ) from error


def _languages(model: WhisperModel) -> tuple[str, ...]:
    """The languages that a model knows."""
    known = model.supported_languages
    if not model.model.is_multilingual:
        return tuple(known)
    tokens = model.hf_tokenizer
    return tuple(one for one in known if tokens.token_to_id(f"<|{one}|>") is not None)
