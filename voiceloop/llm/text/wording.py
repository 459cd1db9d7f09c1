"""The texts that voiceloop itself writes into a conversation, for every engine."""

from __future__ import annotations

from datetime import datetime, timedelta

SPOKEN = (
    "You are a helpful AI assistant who speaks with the user. Answer in one to three short "
    "sentences of plain words, with no lists, no markdown and no emoji."
)
"""The default system prompt. Without it, models write for readers, not for listeners."""
OWN_CALL = "voiceloop_"
"""The beginning of the name of each call that stands in the history for something that a rule
did."""
OKAY = "Okay."
"""The words of a reply in the history that stands for something that a rule did. They claim nothing
that the model could copy."""
BEGAN = "You have begun the conversation with these words:"
"""The text that comes before the model's first words in the system prompt. It is used if the first
message must be the user's, but the model spoke first."""
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTHS = (
    "January February March April May June July August September October November December"
).split()


def told(system: str, now: datetime, place: str) -> str:
    """Return the system prompt `system` with the date and hour at which a conversation begins, and
    the user's place.

    The words for date and hour stay true during the conversation, so the prompt never changes. An
    empty `place` is left out. An empty `system` stays empty.
    """
    if not system:
        return ""
    date = f"{_WEEKDAYS[now.weekday()]}, {now.day} {_MONTHS[now.month - 1]} {now.year}"
    hour = (now + timedelta(minutes=30)).hour
    began = f"The conversation began on {date}, {_part(hour)}, at about {hour % 12 or 12} o'clock."
    return f"{system} {began} The user is in {place}." if place else f"{system} {began}"


def _part(hour: int) -> str:
    if 5 <= hour < 12:
        return "in the morning"
    if 12 <= hour < 18:
        return "in the afternoon"
    return "in the evening" if 18 <= hour < 23 else "at night"
