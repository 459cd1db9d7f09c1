"""A real model with sliding windows and a tokenizer unlike its drafts': Gemma 3 270M.

VOICELOOP_GEMMA names its GGUF file. Google's licence has to be accepted by whoever fetches it, so
nothing here does (docs/models.md).
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.llm.ties import ties
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(
        "VOICELOOP_GEMMA" not in os.environ, reason="VOICELOOP_GEMMA names no file of Gemma 3"
    ),
]

TEMPLATE = """{{ bos_token }}{% for message in messages %}
<start_of_turn>{{ 'model' if message.role == 'assistant' else 'user' }}
{{ message.content | trim }}<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %}"""
"""The file is of a model that was not trained to chat, and has none."""
WINDOW = 512
ASKED = ("What is the capital of France?", "Tell me about the moon. " * 100)
"""The second is longer than a window."""


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("gemma") / "gemma.gguf"
    rewrite = "-m", "gguf.scripts.gguf_new_metadata", "--chat-template", TEMPLATE
    subprocess.run([sys.executable, *rewrite, os.environ["VOICELOOP_GEMMA"], file], check=True)
    return str(file)


def replies(llm: SpeculativeLlm) -> list[tuple[list[int], list[int]]]:
    """The prompt and the reply to each of `ASKED`, in two turns of one conversation."""
    talk, found = llm.conversation(seed=7), list[tuple[list[int], list[int]]]()
    for turn, text in enumerate(ASKED, 1):
        said = [i for b in talk.reply(text, turn) if isinstance(b, TokenBurst) for i in b.ids]
        ids = list(talk.ids)
        found.append((ids[: len(ids) - len(said)], said))
    return found


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_replies_are_the_targets_own_whatever_drafts(gemma: str, temperature: float) -> None:
    def loaded(draft: str) -> SpeculativeLlm:
        return speculative(
            LlmConfig(target=gemma, draft=draft, temperature=temperature, max_new_tokens=24)
        )

    alone = loaded("none")
    plain = replies(alone)
    assert len(plain[1][0]) > WINDOW
    sampling = Sampling(temperature, seed=7)
    for draft in ("starter", "ngram"):
        for turn, (one, other) in enumerate(zip(plain, replies(loaded(draft)), strict=True), 1):
            assert one[0] == other[0]
            if ties(alone._target, sampling, one[0], one[1], other[1], turn):
                break  # what follows is about something else
