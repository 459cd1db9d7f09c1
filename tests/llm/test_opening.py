"""Conversations with the same opening read it once, and reply as if each had read it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.ggufkinds import KINDS, write_kind
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.llm.engine import speculative
from voiceloop.llm.model.cache import KvCache, SharedOpening
from voiceloop.settings.config import LlmConfig

pytestmark = pytest.mark.models

SYSTEM = "it's 7 and it's 12, what is 1984 // 12?"


def said(conversation: SpeculativeConversation, *texts: str) -> list[object]:
    steps = (conversation.reply(text, turn) for turn, text in enumerate(texts))
    return [item for reply in steps for item in reply if item is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_an_opening_that_was_read_is_not_read_again(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "model.gguf"
    write_kind(file, kind)
    config = LlmConfig(target=str(file), draft="none", max_new_tokens=24, system=SYSTEM)
    llm = speculative(config)
    first, second, other = llm.conversation(), llm.conversation(), llm.conversation(system="it")
    texts = "what is it?", "it's 7"
    assert said(first, *texts) == said(second, *texts)
    saved = first.counters.prefilled - second.counters.prefilled
    assert saved == len(llm._template.opening(SYSTEM)) - 1 > 10
    said(other, "it")
    assert other.counters.prefilled > len(llm._template.opening("it"))


def test_openings_that_only_begin_alike_share_nothing(workshop) -> None:
    model, cache, other = workshop.decoder(), KvCache(64), KvCache(64)
    ids = list(range(3, 23))
    for given in (cache, other):
        model.forward(torch.tensor(ids), given, 1)
    opening = SharedOpening()
    opening.keep(ids, cache)
    for different in (ids[:-1], [*ids, 5], [*ids[:-1], 5], []):
        assert not opening.lend(different, other)
        assert other.length == len(ids)
    assert opening.lend(ids, other)


def test_where_there_is_no_memory_for_a_copy_nothing_is_kept(
    workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, cache = workshop.decoder(), KvCache(64)
    ids = list(range(3, 23))
    model.forward(torch.tensor(ids), cache, 1)
    opening = SharedOpening()

    def full(self: KvCache, other: KvCache, length: int) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(KvCache, "fork", full)
        opening.keep(ids, cache)
    assert not opening.lend(ids, KvCache(64))
    opening.keep(ids, cache)
    assert opening.lend(ids, KvCache(64))
