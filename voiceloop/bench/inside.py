"""What the bench needs from inside the language model's engine."""

from __future__ import annotations

import copy
from typing import TypeVar

from voiceloop.llm.draft.drafters import LayerDrafter
from voiceloop.llm.engine import SpeculativeLlm
from voiceloop.llm.model.cache import MIB, CachePool
from voiceloop.llm.model.decoder import Decoder

EngineT = TypeVar("EngineT")
LlmT = TypeVar("LlmT", bound=SpeculativeLlm)


def prompt_of(llm: SpeculativeLlm, text: str) -> tuple[int, ...]:
    """Return the token ids of a conversation up to where the reply to `text` begins."""
    template = llm._template
    before = template.opening(llm.system)
    return (*before, *template.content(text.strip()), *template.user_to_reply)


def target_of(llm: SpeculativeLlm) -> Decoder:
    """Return the decoder of its target."""
    return llm._target


def drafts(llm: SpeculativeLlm) -> bool:
    """Tell whether anything drafts for its target."""
    return llm._drafter is not None


def trained(llm: SpeculativeLlm) -> bool:
    """Tell whether what drafts was trained for the target."""
    return isinstance(llm._drafter, LayerDrafter)


def without_draft(llm: EngineT) -> EngineT:
    """Return an engine over the same target without a draft; others are returned as they are."""
    if not isinstance(llm, SpeculativeLlm):
        return llm
    alone = another(llm)
    alone._drafter = None
    return alone


def as_chain(llm: SpeculativeLlm) -> SpeculativeLlm | None:
    """Return an engine over the same models that drafts no trees; None where none does anyway."""
    if not llm._policy.branches:
        return None
    chained = another(llm)
    chained._policy.branches = False
    return chained


def another(llm: LlmT) -> LlmT:
    """Return an engine over the same models, with caches and a draft policy of its own.

    Groups of one pool have equally many caches, and rounds of one engine would fade what the policy
    of the other knows of drafts.
    """
    own = copy.copy(llm)
    own._policy = copy.deepcopy(llm._policy)
    own._pool = CachePool(llm._config.cache_mb * MIB)
    return own
