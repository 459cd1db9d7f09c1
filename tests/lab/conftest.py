"""Pairs that are built in code, and one small record that several tests read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from lab.decoding.pair import Subjects, load_subjects, subjects
from lab.decoding.run import Decoding, compare
from lab.decoding.synthetic import Shape, drawn_pair, synthetic_prompts
from tests.bench.conftest import quiet
from voiceloop.bench.modes import BenchPrompt
from voiceloop.bench.record import BenchRecord
from voiceloop.settings.config import LlmConfig

CPU = torch.device("cpu")
VOCAB = 512
SHAPE = Shape(48, 64, 2, 4, 2, 12)
TOKENS = 24


def drawn(config: LlmConfig, end: int = 0) -> Subjects:
    """Random weights in double precision: texts depend on the context, guesses stand at times.

    Replies end with the token `end`.
    """
    target, draft = drawn_pair(SHAPE, VOCAB, CPU, torch.float64)
    return subjects(replace(target, eos=frozenset([end])), draft, config)


def prompts_for(both: Subjects, count: int) -> list[BenchPrompt]:
    return [BenchPrompt(text, both.pair.prompt(text)) for text in synthetic_prompts(VOCAB, count)]


@pytest.fixture(scope="session")
def measured() -> BenchRecord:
    """Of two prompts on drawn models."""
    config = LlmConfig(max_new_tokens=TOKENS, num_speculative_tokens=3, context=256, device="cpu")
    command = Decoding(repeats=2, price_per_hour=3.6)
    return compare(drawn(config), synthetic_prompts(VOCAB, 2), command, config, quiet)


@pytest.fixture(scope="session")
def record(measured: BenchRecord) -> dict[str, Any]:
    """The same as it is printed."""
    return measured.to_json()


@pytest.fixture(scope="session")
def oracle() -> Subjects:
    """A synthetic pair whose draft is right in 6 of 10 guesses."""
    config = LlmConfig(max_new_tokens=64, num_speculative_tokens=4, device="cpu", context=256)
    return load_subjects(config, "tiny", 0.6)
