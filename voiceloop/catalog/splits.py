"""Lists the ways in which byte-pair tokenizers split text before they merge, by their GGUF names.

A GGUF file has a tokenizer's vocabulary and merges, but only a name for the split:
`tokenizer.ggml.pre`. Each split is written here as in the tokenizer.json of the original model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DIGITS = "digits"
"""A step that isolates each digit. All other steps are regular expressions."""
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd"
    "\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d"
    "\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec"
    "\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128"
    "\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b"
    "\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787"
    "\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
"""Letters that have a case, as in DeepSeek's first tokenizer."""
_MARKS = r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
_EASTERN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"


@dataclass(frozen=True, slots=True)
class TextSplit:
    """How a text is split before its pieces are merged."""

    steps: tuple[str, ...]
    """Regular expressions, or `DIGITS`. Each step splits the pieces of the step before it."""
    own_words: bool = True
    """True if there are no further steps; False if GPT-2's split follows."""
    composed: bool = False
    """True if letters and their accents first become one character (NFC)."""
    whole: bool = False
    """True if a piece that is in the vocabulary becomes one token, without merges."""


_LLAMA_3 = TextSplit(
    (
        rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}",
    ),
    whole=True,
)
_QWEN_2 = TextSplit(
    (
        rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}",
    ),
    composed=True,
)
SPLITS: Mapping[str, TextSplit] = {
    "gpt-2": TextSplit((), own_words=False),
    "smollm": TextSplit((DIGITS,), own_words=False),
    "llama-bpe": _LLAMA_3,
    "llama3": _LLAMA_3,
    "llama-v3": _LLAMA_3,
    "qwen2": _QWEN_2,
    "deepseek-r1-qwen": _QWEN_2,
    "qwen35": TextSplit(
        (
            rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_REST}",
        ),
        composed=True,
    ),
    "tekken": TextSplit(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
            rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}",
        ),
        whole=True,
    ),
    "gpt-4o": TextSplit(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDINGS}?"
            rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDINGS}?"
            rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}",
        )
    ),
    "deepseek-llm": TextSplit(
        (r"[\r\n]", rf"\s?[{CASED}]+", _MARKS, r"\s+$", _EASTERN, DIGITS),
    ),
    "deepseek-coder": TextSplit((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EASTERN, DIGITS)),
    "deepseek-v3": TextSplit(
        (
            r"\p{N}{1,3}",
            "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
            r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_REST}",
        )
    ),
}
_UNNAMED = ("", "default")
_USUAL: Mapping[str, str] = {
    "gpt2": "gpt-2",
    "gpt-oss": "gpt-4o",
    **dict.fromkeys(("qwen2", "qwen2moe", "qwen3", "qwen3moe"), "qwen2"),
    **dict.fromkeys(("qwen35", "qwen35moe"), "qwen35"),
}
"""Names of splits by architecture. An architecture is listed if all its models split in the same
way. Models of Llama do not."""


def split_of(name: str, architecture: str) -> TextSplit | None:
    """Return the split that a GGUF file calls `name`. If the name is missing, return the usual
    split of the architecture. None if the split is unknown."""
    return SPLITS.get(_USUAL.get(architecture, "") if name in _UNNAMED else name)


def apply(split: TextSplit, backend: Any) -> None:
    """Make a tokenizer of the library tokenizers split text in this way."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    digits = pre_tokenizers.Digits(individual_digits=True)
    steps: list[Any] = [
        digits if step == DIGITS else pre_tokenizers.Split(Regex(step), "isolated")
        for step in split.steps
    ]
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split.own_words)
    backend.pre_tokenizer = pre_tokenizers.Sequence([*steps, last])
    backend.normalizer = normalizers.NFC() if split.composed else None
    backend.model.ignore_merges = split.whole
