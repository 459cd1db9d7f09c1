"""Tells that a text cannot fit into a context before it is tokenised, which takes long."""

from __future__ import annotations

from collections.abc import Sequence

from voiceloop.llm.text.bounds import written
from voiceloop.types import Past, Tool

TOKEN_CHARS = 12
"""Number of characters that no text exceeds for each of its tokens on average."""


def least(text: str) -> int:
    """Return a lower bound of the number of tokens of `text`."""
    return len(text) // TOKEN_CHARS


def least_of_exchange(past: Past) -> int:
    """Return a lower bound of the number of tokens of a past exchange."""
    replied = (part if isinstance(part, str) else part[1] for part in past.replied)
    return (len(past.said) + sum(map(len, replied))) // TOKEN_CHARS


def least_of_opening(system: str, tools: Sequence[Tool]) -> int:
    """Return a lower bound of the number of tokens of a system prompt with tools."""
    described = (len(one.name) + len(one.description) + written(one.parameters) for one in tools)
    return (len(system) + sum(described)) // TOKEN_CHARS
