"""What voiceloop itself writes into a conversation, whichever engine holds it."""

from __future__ import annotations

SPOKEN = (
    "You are a helpful AI assistant who speaks with the user. Answer in one to three short "
    "sentences of plain words, with no lists, no markdown and no emoji."
)
"""The system prompt of models that are told no other: by themselves they write for eyes."""
BROKEN_OFF = "—"
"""Stands in a conversation's history where a reply was interrupted."""
