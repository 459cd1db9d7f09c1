"""Runs Whisper's decoder in CTranslate2: finds the words of a window, and their times.

The times come from the cross-attention. They take a second pass of the decoder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer

from voiceloop.asr.encoding import FRAMES_PER_STATE, HOP, STATE_S
from voiceloop.asr.transcript import normalise, repeats
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.types import Word

MOST_TOKENS = 224
"""Maximum number of tokens of a decode: half of the positions of Whisper's decoder. Nobody says
more in one window."""
DICTATED = 5
"""Minimum number of digits, in words without letters, of a transcript that may hold a number said
in groups. Whisper has tokens of one to three digits. A greedy decode that begins "5577" with the
token "557" says one digit too many or too few; a search by beams can still take "55" and "77"."""
SPARE_TOKENS = 12
TOKENS_PER_S = 12
"""Limit of a decode: `TOKENS_PER_S` tokens for each second of audio, and `SPARE_TOKENS` more.
Nobody speaks faster, so a decode that reaches this limit is in a loop."""
NO_SPEECH = 0.6
"""Probability of no speech above which an unlikely transcript is dropped."""
UNLIKELY = -1.0
"""Mean log probability of a token below which a transcript is unlikely."""
HUMS = {" Mm-hmm.": (0.9, -2.0), " Uh-huh.": (0.5, -2.0), " Ha ha ha.": (2.4, -3.0)}
"""How Whisper writes hums and laughs. It may take one for "Bye bye." or "Amen." instead. A sound is
a hum if the mean log probability of one of these is at most the first number below that of the
transcript, and at least the second number. Of synthetic words that tiny.en understands, these
values lose none."""
HUM_S = 1.5
"""Seconds of a window that may be a hum, a laugh or a sigh; longer ones are not examined."""
CLEAR = -0.3
"""Mean log probability of a token above which a transcript is certainly no hum."""
CLOSINGS = frozenset({"bye", "bye bye", "see you", "thank you", "you"})
CLOSING = -0.55
"""Mean log probability of a token below which one of `CLOSINGS` was not said. Whisper has learnt
from videos, and gives their closing words for sounds without words. Those of synthetic voices that
say them have -0.5 at least; for hums they have -0.55 to -1.5."""
LOOP_TIMES, LOOP_WORDS = 4, 8
"""A phrase at the end of a transcript is a loop if it comes at least `LOOP_TIMES` times in a row,
and if this makes at least `LOOP_WORDS` words in all."""
LOOP_INSIDE = re.compile(r"((?:-?[^\W\d_]){1,8}?)\1{11,}")
"""A loop within a word: up to eight letters that are said at least a dozen times, as in "o-o-o-…".
Two voices at once can lead to that. Repeated digits do not count, since there are large numbers."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A word and the range of its tokens."""

    text: str
    first: int
    """Index of the word's first token."""
    last: int
    """Index of the token after the word's last one."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The result of one decode of a window."""

    states: ctranslate2.StorageView
    """The encoder's states from which the words were decoded."""
    tokens: list[int]
    """Text tokens, without special ones."""
    words: Sequence[Spelling]
    """Words that the tokens spell, loops included."""
    mean: float
    """Mean log probability of a token."""
    no_speech: float
    """Probability that the window holds no speech."""
    ended: bool
    """Whether the decode ended by itself, before its limit of tokens."""

    @property
    def spoken(self) -> Sequence[Spelling]:
        """The words without loops. There are none if the transcript is unlikely and either repeats
        itself or seems to hold no speech, or if it is a closing that was not said."""
        texts = [word.text for word in self.words]
        nothing = self.mean < UNLIKELY and (self.no_speech > NO_SPEECH or repeats(texts))
        closing = self.mean < CLOSING and " ".join(map(normalise, texts)) in CLOSINGS
        return () if nothing or closing else without_loop(self.words)

    @property
    def dictates(self) -> bool:
        """Whether the words may hold a number that is said in groups, such as that of a phone."""
        texts = (word.text for word in self.words if not re.search(r"[^\W\d_]", word.text))
        return sum(letter.isdigit() for text in texts for letter in text) >= DICTATED

    @property
    def trusted(self) -> bool:
        """Whether a decode of the full window would probably give the same words."""
        texts = [word.text for word in self.words]
        return self.ended and self.mean >= UNLIKELY and not repeats(texts)


class WhisperDecoder:
    """The decoder of one model in one language."""

    def __init__(self, model: WhisperModel, language: str) -> None:
        self._model = model.model
        self._tokenizer = Tokenizer(
            model.hf_tokenizer, self._model.is_multilingual, task="transcribe", language=language
        )

    def decode(self, states: ctranslate2.StorageView, seconds: float, beams: int) -> Hypothesis:
        """Decode the window with these encoder `states`, by a search with `beams` beams. The window
        holds `seconds` of audio, which limits the number of tokens."""
        most = min(SPARE_TOKENS + math.ceil(TOKENS_PER_S * seconds), MOST_TOKENS)
        (result,) = self._model.generate(
            states,
            [[*self._tokenizer.sot_sequence, self._tokenizer.no_timestamps]],
            beam_size=beams,
            max_length=2 * most,  # CTranslate2 returns half of it at most
            return_scores=True,
            return_no_speech_prob=True,
        )
        given = result.sequences_ids[0]
        tokens = [token for token in given if token < self._tokenizer.eot]
        # CTranslate2's mean includes the end token's log probability, but does not count it.
        mean = result.scores[0] * len(tokens) / (len(tokens) + 1)
        words, ended = self._spell(tokens), len(given) < most
        return Hypothesis(states, tokens, words, mean, result.no_speech_prob, ended)

    def _spell(self, tokens: list[int]) -> list[Spelling]:
        """Join tokens into words, which begin where a token begins with a space."""
        words: list[Spelling] = []
        pieces, groups = self._tokenizer.split_to_word_tokens(tokens)
        last = 0
        for piece, group in zip(pieces, groups, strict=True):
            first, last = last, last + len(group)
            joins = words and not piece.startswith(" ")
            text = words[-1].text + piece if joins else piece
            if joins:
                first = words.pop().first
            words.append(Spelling(text, first, last))
        return [
            Spelling(word.text.strip(), word.first, word.last)
            for word in words
            if word.text.strip()
        ]

    def hums(self, found: Hypothesis, samples: int) -> bool:
        """Return whether the sound that was decoded as `found` is rather a hum. The window has
        `samples` samples. Costs three passes of the decoder, unless `found` is clear."""
        if found.mean >= CLEAR:
            return False
        heard, sot = _frames(found.states, samples), self._tokenizer.sot_sequence
        for hum, (below, floor) in HUMS.items():
            tokens = self._tokenizer.encode(hum)
            (aligned,) = self._model.align(found.states, sot, [tokens], heard)
            least = max(found.mean - below, floor)
            if np.prod(aligned.text_token_probs) >= math.exp(least * len(tokens)):
                return True
        return False

    def timed(
        self, found: Hypothesis, words: Sequence[Spelling], samples: int
    ) -> tuple[list[Word], list[float]]:
        """Return `words` of the decode `found` with their times, and the times of the tokens.

        The second list has the time at which each token begins, and finally the time at which the
        last one ends. A word begins when the attention moves on to it. All times are in seconds
        from the beginning of the window, which has `samples` samples.
        """
        tokens, heard = found.tokens[: words[-1].last], _frames(found.states, samples)
        (aligned,) = self._model.align(found.states, self._tokenizer.sot_sequence, [tokens], heard)
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
        return timed, begins.tolist()


def _frames(states: ctranslate2.StorageView, samples: int) -> int:
    """Return how many feature frames of `samples` samples the `states` cover."""
    return min(math.ceil(samples / HOP), int(states.shape[1]) * FRAMES_PER_STATE)


def without_loop(words: Sequence[Spelling]) -> Sequence[Spelling]:
    """Return `words` without repetitions: a phrase that loops to the end is kept once, and so are
    letters that loop within a word."""
    words = [replace(word, text=LOOP_INSIDE.sub(r"\1", word.text)) for word in words]
    keys = [normalise(word.text) for word in words]
    for length in range(1, len(keys) // LOOP_TIMES + 1):
        times = 1
        while keys[-length:] == keys[-length * (times + 1) : -length * times]:
            times += 1
        if times >= LOOP_TIMES and times * length >= LOOP_WORDS:
            return words[: len(words) - length * (times - 1)]
    return words
