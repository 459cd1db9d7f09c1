"""Compose requests to a server of chat completions, and adapt them to what the server refuses.

All servers share a protocol, but some refuse parameters that others require. So every server gets
the usual request at first. After a refusal, requests are adapted. A client's words and tools may
cause a refusal, so each conversation learns for itself. Tools have names that servers accept. This
module sends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from voiceloop.llm.remote.errors import ReportedError
from voiceloop.llm.text.messages import Message, alternating, without_system
from voiceloop.settings.config import LlmConfig
from voiceloop.types import Tool

MOST_STOPS = 4
"""Maximum number of stop strings that are sent to the server. All stop strings are also searched
for in the reply, so those that are not sent work too."""
EXTENSIONS = ("top_k", "min_p", "repetition_penalty")
"""Parameters for sampling that only some servers know."""
SAMPLING = ("top_p", "presence_penalty", "frequency_penalty", *EXTENSIONS)
"""Settings that are sent if they differ from their defaults."""
THINKING = ("chat_template_kwargs", "reasoning_effort")
"""Parameters that can ask a model not to think."""
ADDED = (*THINKING, *EXTENSIONS, "stream_options", "parallel_tool_calls")
"""Parameters that only some servers know. If the message of a refusal names one of them, the server
refuses this parameter. Other parameters may be named because the server supports them."""
LIMIT, OTHER_LIMIT = "max_tokens", "max_completion_tokens"
"""The two names of the parameter that limits a reply's tokens. The second is used for OpenAI's own
server, and for a server that refuses the first."""
ALL = (
    *(*ADDED, "seed", "frequency_penalty", "presence_penalty", "top_p", "stop", "temperature"),
    *(LIMIT, OTHER_LIMIT, "tool_choice", "tools"),
)
"""All parameters that a server may refuse."""
UNTOLD = (*THINKING, LIMIT, OTHER_LIMIT, "stream_options", "parallel_tool_calls")
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

    def fitted(self, request: Message) -> Message:
        """Return `request` adapted to the server."""
        fitted: Message = {}
        for name, value in request.items():
            sent_as = OTHER_LIMIT if name == LIMIT and name in self.left_out else name
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
        self.left_out.update(names)
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
        known = [name for name in ALL if name in request]
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


# The usual request --------------------------------------------------------------------------------


def composed(
    config: LlmConfig, messages: Sequence[Message], *, tokens: int, official: bool
) -> Message:
    """Return the request for a reply of at most `tokens` tokens, without tools. `official` tells
    whether it is for OpenAI's own server.

    Optional parameters with default values are left out, because some servers refuse parameters
    that they do not know.
    """
    request: Message = {
        "model": config.target,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        OTHER_LIMIT if official else LIMIT: tokens,
        "temperature": config.temperature,
    }
    if config.thinking == "off":
        request["reasoning_effort"] = "none"
        if not official:
            request["chat_template_kwargs"] = {"enable_thinking": False}
    usual = LlmConfig()
    for name in SAMPLING:
        if (value := getattr(config, name)) != getattr(usual, name):
            request[name] = value
    if config.stop:
        request["stop"] = list(config.stop[:MOST_STOPS])
    return request


def offered(
    tools: Sequence[Tool], required: Sequence[str], names: Mapping[str, str], *, parallel: bool
) -> Message:
    """Return the parameters that offer `tools` under their `names`, and require a call of one of
    those that are `required`. If not `parallel`, one reply calls only one tool."""
    request: Message = {}
    if tools:
        request["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": names[tool.name],
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in tools
        ]
        if not parallel:
            request["parallel_tool_calls"] = False
    if len(required) == 1:
        function = {"name": names[required[0]]}
        request["tool_choice"] = {"type": "function", "function": function}
    elif required:
        request["tool_choice"] = "required"
    return request


# The names of tools -------------------------------------------------------------------------------

LONGEST_NAME = 64
"""Maximum number of characters of a name that all servers accept."""
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")


def accepted(names: Iterable[str]) -> dict[str, str]:
    """Map each of `names` to a name that servers accept, no two to the same one. A name that fits
    stays."""
    fitted = {name: _UNFIT.sub("_", name)[:LONGEST_NAME] or "_" for name in names}
    taken = {name for name, new in fitted.items() if name == new}
    for name, base in fitted.items():
        new, number = base, 1
        while name != base and new in taken:
            number += 1
            new = f"{base[: LONGEST_NAME - 1 - len(str(number))]}_{number}"
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
