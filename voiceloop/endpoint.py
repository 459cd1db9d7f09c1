"""How long a silence ends the user's turn, from what they have said before it.

A rule, not a state: `turns.TurnDetector` counts the silence. This module knows neither audio nor
models; the probability that a turn ends here comes from whoever has one.
"""

from __future__ import annotations

from voiceloop.config import TurnConfig

FINAL = ".?!…,;:"
"""Punctuation at the end of a transcript. Whisper puts some after any pause, so it says nothing."""

UNFINISHED = frozenset(
    "a an the this that these those my your his her its our their some any every each no which "
    "what whose of to in on at by for from with about into onto over under between through and "
    "or but if because so than as when while where who how is are was were am be been do does "
    "did have has had can could will would shall should may might must i you he she we they "
    "it's i'm let's what's who's where's how's there's tell give set convert plus minus times "
    "divided multiplied until like very really please um uh er erm hmm well".split()
)
"""Words after which hardly anybody has finished a request."""


def bare(text: str) -> str:
    """`text` without the punctuation at its end."""
    return text.rstrip(FINAL + " ")


def unfinished(text: str) -> bool:
    """True if the last word of `text` asks for another: the rule of trailing words."""
    words = bare(text).lower().split()
    return not words or words[-1] in UNFINISHED


def hangover_ms(text: str, probability: float | None, config: TurnConfig) -> int:
    """Milliseconds of silence that end a turn in which `text` was said so far.

    `probability` is that of a turn ending after `text` without its final punctuation, None where
    nobody knows it.
    """
    match config.endpoint:
        case "fixed":
            return config.hangover_ms
        case "trailing-words":
            return _by_words(text, config)
        case "p-eot":
            return _by_probability(probability, config)
        case "auto":
            if probability is None:
                return _by_words(text, config)
            return _by_probability(probability, config)


def _by_words(text: str, config: TurnConfig) -> int:
    return config.incomplete_ms if unfinished(text) else config.complete_ms


def _by_probability(probability: float | None, config: TurnConfig) -> int:
    if probability is None:
        return config.hangover_ms
    if probability >= config.complete_above:
        return config.complete_ms
    return config.incomplete_ms if probability < config.incomplete_below else config.hangover_ms
