"""Whisper through faster-whisper and CTranslate2, which encodes no more than it needs to.

Whisper was trained on windows of 30 seconds, and encoding one takes most of a decode's time. On a
CPU our own encoder gives the states of a full window for little more than the speech in it
(`silence`). Where the words that come out are unlikely or repeat themselves, a final decode is made
once more from states that are encoded in full; where they leave out what was said, the window is
decoded once more in two parts (`unheard`).

A decode is one bounded call. Word times come from the cross-attention, and only where they are
asked for, since they cost a second pass of the decoder. On a GPU CTranslate2 works on a
thread and a stream of its own, of usual priority; that stream waits for none but the device's
default one, on which nothing of ours runs (`placement.own_stream`). This module knows nothing of
streams of audio and turns.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer

from voiceloop.asr.agreement import normalise, repeats
from voiceloop.asr.cublas import INSTALL, load_cublas
from voiceloop.asr.encoding import STATE_S, Encoding, is_ours, own_encoder, read_windows
from voiceloop.asr.features import FRAMES_PER_STATE, HOP
from voiceloop.asr.known import unknown_language
from voiceloop.asr.placement import whisper_device, whisper_type
from voiceloop.asr.unheard import LONG_S, Sound, fuller, gone
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bundled import bundled
from voiceloop.catalog.names import FOLDERS, find
from voiceloop.config import AsrConfig
from voiceloop.engines import Asr, AsrRequest
from voiceloop.errors import ConfigError, EngineError, ModelCorrupt, OutOfMemory
from voiceloop.languages import AUTO
from voiceloop.types import Pcm, Word

logger = logging.getLogger(__name__)

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
"""Mean log probability of a token under which a transcript is unlikely. A final one is made once
more then, from states that are encoded in full; what may be no speech is dropped."""
LOOP_TIMES, LOOP_WORDS = 4, 8
"""A phrase that ends the transcript this many times over, and fills this many words, is a loop."""
LOOP_INSIDE = re.compile(r"((?:-?[^\W\d_]){1,8}?)\1{11,}")
"""Letters within a word, a dozen times over: "o-o-o-…", to which two voices at once can lead.
Digits may repeat themselves: there are large numbers."""
LOOKS = 2
"""Times that a window is divided where words are missing: of three sentences two may be."""
CAREFUL_BEAMS = 5
SURE = 0.6
"""Probability that the words of a part must have, on average, which may hold nothing but noise."""
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


@dataclass(frozen=True, slots=True)
class _Told:
    """The words of a window."""

    found: _Hypothesis | None
    """The decode that gave them; none where they are of several."""
    words: Sequence[Word]
    moments: Sequence[float]
    """When each token of them begins, and when the last ends; none where they are not timed."""

    @property
    def texts(self) -> list[str]:
        """The words alone."""
        return [word.text for word in self.words]


class Whisper(WindowedAsr):
    """A recogniser; implements `engines.Asr`."""

    def __init__(self, config: AsrConfig, model: WhisperModel, encoding: Encoding) -> None:
        self.name = f"whisper {config.model}"
        self._beams = config.beam_size
        self._model = model
        self._encode = encoding
        self.max_window_s = encoding.windows.longest_s
        self.languages = _languages(model)
        # A model of one language has none to detect.
        alone = config.language == AUTO and not model.model.is_multilingual
        self._language = self.languages[0] if alone else config.language
        self._tokenizers = dict[str, Tokenizer]()
        self._tokenizer = self._speaks(
            self.languages[0] if config.language == AUTO else config.language
        )
        """Of the language that is decoded."""
        self.counters = {"short_windows": 0, "full_windows_after": 0, "looked_again": 0}
        """Final decodes in a short window, those among them that took the full one after, and
        windows that were decoded again in parts."""

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """See `engines.Asr`.

        A final decode uses the configured beams, a partial is greedy. Words that are `timed` have
        the times and probabilities that the cross-attention gives; others share the window evenly
        and all have the mean probability, or 0 where the decode looped, came to no end, or may
        have left something out. ValueError for a window longer than `max_window_s`.
        """
        pcm, timed = request.pcm, request.timed
        seconds = len(pcm) / SPEECH_RATE
        if seconds > self.max_window_s:
            raise ValueError(f"a window of {seconds:.1f} s is longer than {self.max_window_s} s")
        if not _audible(pcm):
            return ()
        states = self._encode(pcm)
        asked = request.language or self._language
        self._tokenizer = self._speaks(self._detected(states)[0] if asked == AUTO else asked)
        sound = Sound(pcm)
        if not request.final:
            return self._told(self._decode(states, seconds, 1), sound, timed=timed).words
        first = self._told(self._finally(states, pcm), sound, timed=timed)
        return self._complete(sound, first, request.settled, LOOKS).words

    def _finally(self, states: ctranslate2.StorageView, pcm: Pcm) -> _Hypothesis:
        """The decode of a window that is trusted, or else the best."""
        seconds = len(pcm) / SPEECH_RATE
        found = self._decode(states, seconds, self._beams)
        if self._encode.shortens(pcm):
            self.counters["short_windows"] += 1
            if not _trusted(found):
                self.counters["full_windows_after"] += 1
                found = self._decode(self._encode(pcm, whole=True), seconds, self._beams)
        return found

    def _told(self, found: _Hypothesis, sound: Sound, *, timed: bool) -> _Told:
        """The words of a decode, but for loops and for what is no speech."""
        looped = repeats([word.text for word in found.words])
        nothing = found.mean < UNLIKELY and (found.no_speech > NO_SPEECH or looped)
        words = () if nothing else without_loop(found.words)
        if not words:
            return _Told(found, (), ())
        if timed:
            return self._timed(found, words, len(sound.pcm))
        step = len(sound.pcm) / SPEECH_RATE / len(words)
        looped = not found.ended or len(words) < len(found.words)
        sure = not looped and not sound.spare(len(found.tokens))
        probability = math.exp(found.mean) if sure else 0.0
        spread = enumerate(words)
        return _Told(
            found, [Word(w.text, i * step, (i + 1) * step, probability) for i, w in spread], ()
        )

    def _complete(self, sound: Sound, first: _Told, settled: Sequence[str], looks: int) -> _Told:
        """What is said in a window, of which `first` was heard. Where that leaves much sound
        without words, or lacks some that were settled, the window is decoded again."""
        whole, lost = first.found, gone(settled, first.texts)
        assert whole is not None, "it was decoded in one piece"
        if not looks or not (lost or first.moments or sound.spare(len(whole.tokens))):
            return first
        if first.words and not first.moments:
            first = self._told(whole, sound, timed=True)
        silent, span = sound.without_words(first.moments)
        if not lost and (not first.words or silent < LONG_S):
            return first
        self.counters["looked_again"] += 1
        places = sound.places(span)
        if looks < LOOKS:
            places = places[:1]
        found = [self._divided(sound.pcm, at, first.texts, looks - 1) for at in places]
        better = [told for told in found if fuller(settled, first.texts, told.texts)]
        if looks == LOOKS and not better:
            again = self._decode(whole.states, len(sound.pcm) / SPEECH_RATE, CAREFUL_BEAMS)
            told = self._told(again, sound, timed=True)
            better = [told] if fuller(settled, first.texts, told.texts) else []
        return max(better, key=lambda told: len(told.words), default=first)

    def _divided(self, pcm: Pcm, at: int, known: Sequence[str], looks: int) -> _Told:
        """What is said in a window before and after sample `at`, each decoded by itself. Of a part
        that may be noise no words are taken but those that are `known`."""
        words: list[Word] = []
        moments: list[float] = []
        for part, begin in ((pcm[:at], 0.0), (pcm[at:], at / SPEECH_RATE)):
            if not _audible(part):
                continue
            found, sound = self._finally(self._encode(part), part), Sound(part)
            told = self._complete(sound, self._told(found, sound, timed=True), (), looks)
            sure = _trusted(found) and _likely(told.words)
            if not sure and not set(told.texts) <= set(known):
                continue
            words += [
                replace(word, start=word.start + begin, end=word.end + begin) for word in told.words
            ]
            moments += [moment + begin for moment in told.moments]
        return _Told(None, words, moments)

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        """See `engines.Asr`; as much of `pcm` counts as a window holds.

        ConfigError where the model's folder does not say which of its tokens are languages.
        """
        if not self._model.model.is_multilingual:
            return self.languages[0], 1.0
        return self._detected(self._encode(pcm[: int(self.max_window_s * SPEECH_RATE)]))

    def _detected(self, states: ctranslate2.StorageView) -> tuple[str, float]:
        """The language of a window, and how likely it is."""
        (found,) = self._model.model.detect_language(states)
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

    def _decode(self, states: ctranslate2.StorageView, seconds: float, beams: int) -> _Hypothesis:
        """What is said in a window, of which so much is not filled up."""
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

    def _timed(self, found: _Hypothesis, words: Sequence[_Spelling], samples: int) -> _Told:
        """Words with the times at which the decoder's attention moves on to them."""
        tokens, states = found.tokens[: words[-1].last], found.states
        heard = min(math.ceil(samples / HOP), int(states.shape[1]) * FRAMES_PER_STATE)
        (aligned,) = self._model.model.align(states, self._tokenizer.sot_sequence, [tokens], heard)
        begins = np.full(len(tokens) + 1, np.inf)
        for token, state in aligned.alignments:
            begins[token] = min(begins[token], state * STATE_S)
        begins[-1] = min(begins[-1], samples / SPEECH_RATE)
        probabilities = np.asarray(aligned.text_token_probs)
        timed = [
            Word(
                word.text,
                float(begins[word.first]),
                float(begins[word.last]),
                float(probabilities[word.first : word.last].mean()),
            )
            for word in words
        ]
        return _Told(found, timed, begins.tolist())


def _likely(words: Sequence[Word]) -> bool:
    return sum(word.probability for word in words) >= SURE * len(words)


def _audible(pcm: Pcm) -> bool:
    return float(np.abs(pcm).max(initial=0.0)) >= QUIETEST


def _trusted(found: _Hypothesis) -> bool:
    """Whether states that are encoded in full would hardly give anything else."""
    said = [word.text for word in found.words]
    return found.ended and found.mean >= UNLIKELY and not repeats(said)


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
        raise unknown_language(config)
    windows = read_windows(folder)
    encoder = own_encoder(folder, model) if is_ours(model.model.device, windows) else None
    return Whisper(config, model, Encoding(model, windows, encoder, config.pad_s))


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
