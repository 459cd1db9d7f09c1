"""What has been found out about a server of chat completions, and how it is asked because of that.

The protocol is one and servers are many: what one wants the next refuses, so everybody is asked in
the usual way until a refusal tells otherwise. This module sends nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from voiceloop.llm.remote.complaints import Complaint
from voiceloop.llm.text.messages import Message, alternating, without_system

LIMITS = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
"""The names that the longest reply goes by: where one is refused the other is tried."""
THINKING = ("chat_template_kwargs", "reasoning_effort")
"""What asks a model not to think."""
ADDED = (*THINKING, "repetition_penalty", "min_p", "top_k", "stream_options")
"""Not of every server: none refuses another parameter and tells that it knows these."""
USUAL = (
    *("seed", "frequency_penalty", "presence_penalty", "top_p", "stop", "temperature"),
    *(*LIMITS, "tool_choice", "tools"),
)
UNTOLD = (*THINKING, *LIMITS, "stream_options")
"""Nobody has asked for these, and nobody misses them."""
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
"""What else a refusal of a parameter may speak of."""


@dataclass(slots=True)
class Manners:
    """Of one server and its model."""

    left_out: set[str] = field(default_factory=set[str])
    """Parameters that it refuses."""
    limit: str | None = None
    """What it calls the longest reply, where it has refused the other name."""
    no_system: bool = False
    """It takes no system prompt, so that stands in the user's first turn."""
    alternates: bool = False
    """It takes turns of user and assistant in turn only, beginning with the user's."""
    thinks: bool = False
    """Its model has thought, so a reply needs more tokens than what it says."""
    opens_in_thought: bool = False
    """Its replies begin within a thought, of which only the end is marked."""

    def fitted(self, request: Message) -> Message:
        """The request as the server takes it."""
        fitted: Message = {}
        for name, value in request.items():
            own = self.limit if self.limit and name in LIMITS else name
            if own not in self.left_out:
                fitted[own] = value
        if "tools" not in fitted:
            fitted.pop("tool_choice", None)
        if self.alternates:
            fitted["messages"] = alternating(fitted["messages"])
        if self.no_system:
            fitted["messages"] = without_system(fitted["messages"])
        return fitted

    def learn(self, complaint: Complaint, asked: Message) -> list[str]:
        """Take note of why `asked`, as it was fitted, was refused. What is left out from now on is
        told, if anybody may miss it."""
        said = f"{complaint.said} {complaint.named}"
        if _ROLES.search(said) and self._learn_roles(said, asked):
            return []
        names = self._refused(complaint, asked)
        for name in names:
            if name in LIMITS and self.limit is None:
                self.limit = LIMITS[name]
            else:
                self.left_out.add(name)
        return [name for name in names if name not in UNTOLD]

    def _learn_roles(self, said: str, asked: Message) -> bool:
        """Whether messages of other roles would be others."""
        messages = asked["messages"]
        merged = {"no_system": without_system(messages), "alternates": alternating(messages)}
        names = reversed(merged) if _ALTERNATE.search(said) else iter(merged)
        name = next((name for name in names if merged[name] != messages), None)
        if name is not None:
            setattr(self, name, True)
        return name is not None

    def _refused(self, complaint: Complaint, asked: Message) -> list[str]:
        """The parameters that a refusal is about: those that it names apart from what it says, or
        else of those that it speaks of the ones that are added, or the first."""
        known = [name for name in (*ADDED, *USUAL) if name in asked]
        if apart := [name for name in known if _names(complaint.named, name)]:
            return apart
        said = complaint.said
        if not _REFUSES.search(f"{said} {complaint.named}"):
            return []
        found = [name for name in known if _names(said, name)]
        if added := [name for name in found if name in ADDED]:
            return added
        if found:
            return [min(found, key=said.index)]
        return [name for name in known if name in _MEANT and _MEANT[name].search(said)]


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){name}(?!\w)", text) is not None
