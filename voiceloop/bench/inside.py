"""The bench's access to private parts of the language model's engine."""

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
    """Return the decoder of the engine's target."""
    return llm._target


def drafts(llm: SpeculativeLlm) -> bool:
    """Return whether the engine has a draft."""
    return llm._drafter is not None


def trained(llm: SpeculativeLlm) -> bool:
    """Return whether the engine's draft was trained for its target."""
    return isinstance(llm._drafter, LayerDrafter)


def without_draft(llm: EngineT) -> EngineT:
    """Return an engine over the same target without a draft. An engine of another kind is returned
    unchanged."""
    if not isinstance(llm, SpeculativeLlm):
        return llm
    alone = another(llm)
    alone._drafter = None
    return alone


def as_chain(llm: SpeculativeLlm) -> SpeculativeLlm | None:
    """Return an engine over the same models that drafts chains of tokens only, never trees. None if
    `llm` already does so."""
    if not llm._policy.branches:
        return None
    chained = another(llm)
    chained._policy.branches = False
    return chained


def another(llm: LlmT) -> LlmT:
    """Return an engine over the same models, with its own cache pool and its own draft policy.

    Two engines cannot share a cache pool, because all groups of a pool must have the same number of
    caches. They cannot share a draft policy either. During the rounds of one engine, the policy
    would forget what it has learnt from the other engine.
    """
    own = copy.copy(llm)
    own._policy = copy.deepcopy(llm._policy)
    own._pool = CachePool(llm._config.cache_mb * MIB)
    return own
