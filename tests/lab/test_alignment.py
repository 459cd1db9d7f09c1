"""Words are found where they are spoken, by an aligner that is held to them."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from lab.conversations.alignment import aligner
from lab.conversations.utterances import Line, speak
from voiceloop.audio.frames import samples, silence
from voiceloop.errors import MissingExtra
from voiceloop.types import Pcm

pytestmark = pytest.mark.models

WORDS = ("Seven", "yellow", "tractors,", "crossed", "the", "bridge", "yesterday.")


def spoken() -> tuple[Pcm, list[int]]:
    """A sentence, and where each of its words begins."""
    (line,) = speak([Line(" ".join(WORDS), "en-us", 1.0)])
    quiet = np.random.default_rng(0).normal(0, 1e-3, len(line.pcm) + 8000).astype(np.float32)
    return (
        np.concatenate((silence(4000), line.pcm, silence(4000))) + quiet,
        [4000 + start for start in line.starts],
    )


def test_words_are_found_where_they_are() -> None:
    pcm, starts = spoken()
    found = [place for place in aligner()(pcm, WORDS) if place]
    assert len(found) == len(WORDS)
    assert found == sorted(found) and all(start < end for start, end in found)
    off = [abs(mine - true) for (mine, _), true in zip(found, starts, strict=True)]
    assert np.median(off) < samples(50)


def test_without_the_package_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported = builtins.__import__

    def refuses(name: str, *rest: Any) -> Any:
        if name == "pocketsphinx":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuses)
    with pytest.raises(MissingExtra) as missing:
        aligner()
    assert "[dev]" in missing.value.hint
