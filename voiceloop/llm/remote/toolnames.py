"""Give tools the names that servers of chat completions accept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from voiceloop.llm.text.messages import Message

LONGEST = 64
"""Maximum number of characters of a name that all servers accept."""
_FITS = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")


def accepted(names: Iterable[str]) -> dict[str, str]:
    """Map each of `names` to a name that servers accept, no two to the same one. A name that fits
    stays."""
    different = dict.fromkeys(names)
    fitted = {name: name for name in different if _FITS.fullmatch(name)}
    taken = set(fitted)
    for name in different:
        if name in fitted:
            continue
        base = new = _UNFIT.sub("_", name)[:LONGEST] or "_"
        number = 1
        while new in taken:
            number += 1
            new = f"{base[: LONGEST - 1 - len(str(number))]}_{number}"
        fitted[name] = new
        taken.add(new)
    return fitted


def called(messages: Iterable[Message]) -> list[str]:
    """Return the names of the tools that are called in `messages`."""
    return [call["function"]["name"] for one in messages for call in one.get("tool_calls", ())]


def renamed(message: Message, names: Mapping[str, str]) -> Message:
    """Return `message` with the names of the tools that it calls replaced by those in `names`."""
    if "tool_calls" not in message:
        return message
    calls = [
        call | {"function": call["function"] | {"name": names[call["function"]["name"]]}}
        for call in message["tool_calls"]
    ]
    return message | {"tool_calls": calls}
