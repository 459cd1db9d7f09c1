"""Whisper through faster-whisper and CTranslate2, on windows no longer than they need to be.

faster-whisper's own `transcribe` always encodes 30 seconds. Here features are made for the window
that a model needs, encoded, and decoded with one bounded call; exact word times come from the
cross-attention and are made for final decodes only, since they cost a second pass of the decoder.
This module knows nothing of streams and turns.
"""

from __future__ import annotations

import difflib
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel, available_models
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.utils import download_model

from voiceloop.asr.agreement import normalise
from voiceloop.asr.features import HOP, LogMel
from voiceloop.audio import SPEECH_RATE
from voiceloop.bundled import bundled
from voiceloop.config import AsrConfig
from voiceloop.engines import Asr
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound, OutOfMemory
from voiceloop.types import Pcm, Word

logger = logging.getLogger(__name__)

FULL_WINDOW_S = 30.0
"""What Whisper was trained on, and the most that its encoder takes."""
STARTER_WINDOW_S = 14.0
"""The starter model was trained on utterances of at most this length."""
SHORTEST_WINDOW_S = 0.5
FRAMES_PER_STATE = 2
FRAMES_PER_STEP = 20
"""Windows are encoded in lengths of whole steps of 0.2 s: the encoder's convolutions compile, and
keep for good, a kernel of some 0.2 MB for each length they have met."""
STATE_S = 0.02
"""Time from one state of the encoder to the next."""
MAX_LENGTH = 448
"""Tokens that the decoder has positions for, the prompt included."""
SPARE_TOKENS = 16
TOKENS_PER_S = 20
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
SPECIALS = ("<|startoftranscript|>", "<|endoftext|>", "<|notimestamps|>")
NEEDED = ("model.bin", "config.json", "tokenizer.json")
CONVERT = (
    "make the folder with: ct2-transformers-converter --model MODEL --output_dir FOLDER "
    "--copy_files tokenizer.json preprocessor_config.json"
)

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


class Whisper:
    """A recogniser; implements `engines.Asr`."""

    def __init__(self, config: AsrConfig, model: WhisperModel) -> None:
        starter = config.model == "starter"
        self.name = f"whisper {config.model}"
        self.max_window_s = STARTER_WINDOW_S if starter else FULL_WINDOW_S
        default = 0.0 if starter else FULL_WINDOW_S
        least = default if config.min_window_s is None else config.min_window_s
        self._least = max(least, SHORTEST_WINDOW_S)
        self._beams = config.beam_size
        self._model = model
        self._log_mel = LogMel(model.feature_extractor.mel_filters)
        self._tokenizer = _tokenizer(model, config)
        self._start = self._tokenizer.sot_sequence
        self._prompt = [*self._start, self._tokenizer.no_timestamps]

    def transcribe(self, pcm: Pcm, *, final: bool) -> Sequence[Word]:
        """Words of a window at 16 kHz; see `engines.Asr`.

        A final decode uses the configured beams, and its words have the times and probabilities
        that the cross-attention gives. A partial is greedy; its words share the window evenly and
        all have the mean probability. ValueError for a window longer than `max_window_s`.
        """
        seconds = len(pcm) / SPEECH_RATE
        if seconds > self.max_window_s:
            raise ValueError(f"a window of {seconds:.1f} s is longer than {self.max_window_s} s")
        if float(np.abs(pcm).max(initial=0.0)) < QUIETEST:
            return ()
        states = self._model.encode(self._log_mel(pcm, self._frames(seconds)))
        most = SPARE_TOKENS + math.ceil(TOKENS_PER_S * seconds)
        (result,) = self._model.model.generate(
            states,
            [self._prompt],
            beam_size=self._beams if final else 1,
            max_length=min(len(self._prompt) + most, MAX_LENGTH),
            return_scores=True,
            return_no_speech_prob=True,
        )
        tokens = [token for token in result.sequences_ids[0] if token < self._tokenizer.eot]
        mean = result.scores[0] * len(tokens) / (len(tokens) + 1)
        if result.no_speech_prob > NO_SPEECH and mean < UNLIKELY:
            return ()
        words = without_loop(self._spell(tokens))
        if not words:
            return ()
        tokens = tokens[: words[-1].last]
        if final:
            return self._timed(states, tokens, words, len(pcm))
        step = seconds / len(words)
        return [
            Word(word.text, i * step, (i + 1) * step, math.exp(mean))
            for i, word in enumerate(words)
        ]

    def _frames(self, seconds: float) -> int:
        """Frames of the window for so much audio."""
        steps = math.ceil(max(seconds, self._least) * SPEECH_RATE / HOP / FRAMES_PER_STEP)
        frames = steps * FRAMES_PER_STEP
        # CTranslate2 would take as many states as there are mel bands for features, and encode
        # them once more: whatever is said in just 1.6 s would be lost.
        mels = len(self._model.feature_extractor.mel_filters)
        return frames + FRAMES_PER_STATE * (frames == mels * FRAMES_PER_STATE)

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
        (found,) = self._model.model.align(states, self._start, [tokens], heard)
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
    """The words, with a phrase that repeats itself to the end said only once."""
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

    Raises ModelNotFound, ModelCorrupt, OutOfMemory, or ConfigError for a language that the model
    does not know.
    """
    return Whisper(config, load(find(config.model), config))


def find(name: str) -> Path:
    """The folder of a model: the bundled starter, a path, or a name on the hub."""
    if name == "starter":
        return bundled("models/starter/asr")
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise ModelNotFound(f"{name} is a file, not the folder of a model", CONVERT)
    # What is written like a path is never looked up elsewhere.
    if name.startswith((".", "~")) or path.is_absolute() or name.count("/") > 1 or "\\" in name:
        raise ModelNotFound(f"there is no folder {name}", "check the path")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    """A model of the hub, fetched unless an earlier run has done so."""
    if "/" not in name and name not in available_models():
        near = difflib.get_close_matches(name, available_models(), n=1)
        raise ModelNotFound(
            f"there is no Whisper model called '{name}'",
            f"did you mean '{near[0]}'?" if near else "try base.en, or the path of a folder",
        )
    try:
        return Path(download_model(name, local_files_only=True))
    except FileNotFoundError:
        logger.info("fetching %s from the hub", name)
    try:
        return Path(download_model(name))
    except Exception as error:  # whatever the hub's client raises: network, name, rights, disk
        reason = str(error).strip().partition("\n")[0]
        raise ModelNotFound(
            f"{name} is not on this machine and could not be fetched ({reason})",
            "connect to the network once, or give the path of a folder",
        ) from error


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


def load(folder: Path, config: AsrConfig, opener: Opener = open_model) -> WhisperModel:
    """The model in `folder`, on the GPU if it works there and else on the CPU."""
    missing = [file for file in NEEDED if not (folder / file).is_file()]
    if missing:
        raise ModelCorrupt(f"{folder} is no Whisper model: {', '.join(missing)} missing", CONVERT)
    device = config.device
    if device == "auto":
        device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    default = "int8" if device == "cpu" else "float16"
    compute_type = default if config.compute_type == "auto" else config.compute_type
    if device == "cuda":
        try:
            return opener(folder, device, compute_type)
        except (RuntimeError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            if "out of memory" in reason:
                raise OutOfMemory(
                    f"{config.model} does not fit into the GPU's memory",
                    "choose a smaller model, or --asr.device cpu",
                ) from error
            logger.warning("recognition runs on the CPU, the GPU does not work: %s", reason)
            compute_type = "int8"
    try:
        return opener(folder, "cpu", compute_type)
    except Exception as error:  # CTranslate2 and tokenizers raise bare exceptions
        reason = str(error).strip().partition("\n")[0]
        raise ModelCorrupt(f"the model in {folder} cannot be loaded: {reason}", CONVERT) from error


def _tokenizer(model: WhisperModel, config: AsrConfig) -> Tokenizer:
    multilingual = model.model.is_multilingual
    known = model.supported_languages
    spoken = model.hf_tokenizer.token_to_id(f"<|{config.language}|>") is not None
    if config.language not in known or (multilingual and not spoken):
        raise ConfigError(
            f"the model {config.model} does not know the language '{config.language}'",
            "give a two-letter code such as en, and a model of many languages such as base",
        )
    return Tokenizer(model.hf_tokenizer, multilingual, task="transcribe", language=config.language)
