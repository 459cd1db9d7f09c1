"""Keep the known limits of one server of chat completions, and adapt requests to them.

All servers share a protocol, but some refuse parameters that others require. So every server gets
the usual request at first. After a refusal, requests are adapted. A client's words and tools may
cause a refusal, so each conversation learns for itself. This module sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from voiceloop.llm.remote.errors import ReportedError
from voiceloop.llm.text.messages import Message, alternating, without_system

LIMITS = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
"""The two names of the parameter that limits a reply's tokens. Each is mapped to the name that is
tried if the server refuses it."""
THINKING = ("chat_template_kwargs", "reasoning_effort")
"""Parameters that can ask a model not to think."""
ADDED = (
    *(*THINKING, "repetition_penalty", "min_p", "top_k", "stream_options"),
    "parallel_tool_calls",
)
"""Parameters that only some servers know. If the message of a refusal names one of them, the server
refuses this parameter. Other parameters may be named because the server supports them."""
USUAL = (
    *("seed", "frequency_penalty", "presence_penalty", "top_p", "stop", "temperature"),
    *(*LIMITS, "tool_choice", "tools"),
)
UNTOLD = (*THINKING, *LIMITS, "stream_options", "parallel_tool_calls")
"""Parameters that are left out without a warning, because no user of this machine has set them."""
_REFUSES = re.compile(
    r"unsupported|(not|n't)\W+(\w+\W+){0,3}(support|permit|allow|accept|recogni|enabl|implement|valid)"
    r"|unrecogni|unknown|unexpected|unused|extra|invalid|illegal|must|should|only|cannot|can't"
    r"|deprecated|requires?|out of range|too (large|high|many|big)|no such|no field|no endpoints"
    r"|forbid|reject|(higher|less|greater) than|between|at (most|least)|does not (know|take)",
    re.IGNORECASE,
)
_ROLES = re.compile(
    r"\broles?\b|alternat|consecutive|(system|developer) (message|prompt|instruction|role)"
    r"|first message|multi-?turn",
    re.IGNORECASE,
)
_ALTERNATE = re.compile(
    r"alternat|consecutive|in a row|first message|multi-?turn|start|begin", re.IGNORECASE
)
_MEANT = {
    "tools": re.compile(r"\btools?\b|\btool[ _-]?(us|call|choice)|function.call", re.IGNORECASE),
    **dict.fromkeys(THINKING, re.compile(r"\bthink|\breasoning", re.IGNORECASE)),
}
"""Patterns of words that show which parameter a refusal is about if it does not name the
parameter."""


@dataclass(slots=True)
class Quirks:
    """The known limits of one server and its model, as far as one conversation knows them."""

    left_out: set[str] = field(default_factory=set[str])
    """Parameters that the server refuses."""
    limit: str | None = None
    """The name in `LIMITS` that requests use. None if the server has refused neither name: then the
    name in the usual request stays."""
    no_system: bool = False
    """Whether the server refuses system prompts. If so, the prompt is put at the beginning of the
    user's first message."""
    alternates: bool = False
    """Whether messages of user and assistant must alternate, and the user's must be the first."""
    thinks: bool = False
    """Whether the server's model has sent a thought. If so, requests allow more tokens, for
    thoughts."""
    opens_in_thought: bool = False
    """Whether the server's replies begin inside a thought without a start mark."""

    def copied(self) -> Quirks:
        """Return a copy, which learns for itself."""
        return replace(self, left_out=set(self.left_out))

    def forgive(self, parameters: Collection[str]) -> None:
        """Forget that the server has refused `parameters`."""
        self.left_out.difference_update(parameters)

    def fitted(self, request: Message) -> Message:
        """Return `request` adapted to the server."""
        fitted: Message = {}
        for name, value in request.items():
            sent_as = self.limit if self.limit and name in LIMITS else name
            if sent_as not in self.left_out:
                fitted[sent_as] = value
        if "tools" not in fitted:
            fitted.pop("tool_choice", None)
            fitted.pop("parallel_tool_calls", None)
        if self.alternates:
            fitted["messages"] = alternating(fitted["messages"])
        if self.no_system:
            fitted["messages"] = without_system(fitted["messages"])
        return fitted

    def learn(self, reported: ReportedError, request: Message) -> list[str]:
        """Learn from the refusal of `request`, which was adapted before. Return the parameters that
        are left out from now on and that a user may have set."""
        said = f"{reported.said} {reported.named}"
        if _ROLES.search(said) and self._learn_roles(said, request):
            return []
        names = self._refused(reported, request)
        for name in names:
            if name in LIMITS and self.limit is None:
                self.limit = LIMITS[name]
            else:
                self.left_out.add(name)
        return [name for name in names if name not in UNTOLD]

    def _learn_roles(self, said: str, request: Message) -> bool:
        """Choose how the roles of messages are adapted from now on. Return False if nothing would
        change `request`."""
        messages = request["messages"]
        merged = {"no_system": without_system(messages), "alternates": alternating(messages)}
        names = reversed(merged) if _ALTERNATE.search(said) else iter(merged)
        name = next((name for name in names if merged[name] != messages), None)
        if name is not None:
            setattr(self, name, True)
        return name is not None

    def _refused(self, reported: ReportedError, request: Message) -> list[str]:
        """Return the parameters of `request` that a refusal is about.

        The refusal is searched in this order, until a parameter is found: its code and parameter
        fields for all parameters; its message for those of `ADDED`; its message for the first of
        all others; its message for words of `_MEANT`.
        """
        known = [name for name in (*ADDED, *USUAL) if name in request]
        if apart := [name for name in known if _names(reported.named, name)]:
            return apart
        said = reported.said
        if not _REFUSES.search(f"{said} {reported.named}"):
            return []
        found = [name for name in known if _names(said, name)]
        if added := [name for name in found if name in ADDED]:
            return added
        if found:
            return [min(found, key=said.index)]
        return [name for name in known if name in _MEANT and _MEANT[name].search(said)]


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){name}(?!\w)", text) is not None
