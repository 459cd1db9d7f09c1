"""Ask a server how likely it is that the user's turn is over: llama.cpp's server, and vLLM.

The server tells the probabilities of the tokens that may come after the user's words, and fills its
prompt cache by that. llama.cpp's server renders the prompt first, which is then cut after the
words. vLLM continues the last message itself (`continue_final_message`); SGLang does so only for
messages of the assistant. This module sends nothing itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from voiceloop.llm.remote.chatstream import usage_of
from voiceloop.llm.text.template import BREAKS, MARKS

RENDERED = ("tools", "chat_template_kwargs", "reasoning_effort")
"""What of a request, beside the messages, a chat template may use."""
ONE_TOKEN = {"n_predict": 1, "n_probs": 40, "cache_prompt": True, "temperature": 0.0}
GOES_ON = {
    **{"stream": False, "max_tokens": 1, "logprobs": True, "top_logprobs": 20},
    **{"add_generation_prompt": False, "continue_final_message": True},
}
"""What makes a request for chat completions tell what may come after its last message."""
STEERS = re.compile(r"<\|.+\|>|</?[\w ]+>|\[/?[A-Z_]+\]")
"""How servers write tokens that steer the model, if they write them."""
ENDS = frozenset(f"{mark}{rest}" for mark in MARKS for rest in ("", *BREAKS))
"""Tokens that end a sentence."""
Answer = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Sends a request and returns the answer's JSON."""
PLACE = "\ue000\ue001"
"""The end of the user's words in a rendered prompt."""
OTHER_FORM = (ValueError, LookupError, TypeError, AttributeError)
"""The errors of an answer that has another form than that of llama.cpp's server."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a server tells after it has read ahead."""

    ends: float | None = None
    """The probability that the user's turn is over; None if the server does not tell it."""
    tokens: int = 0
    """The number of tokens that the server has read, without those in its cache."""


async def turn_end(answer: Answer, body: Mapping[str, Any], text: str) -> Reading:
    """Let llama.cpp's server read the messages in `body`, and tell the probability that the user's
    turn is over after `text`, the end of the last message. If `text` is empty, only what is before
    it is read, and the probability is 0. Raises the errors of `answer`, and `OTHER_FORM`.
    """
    *before, last = body["messages"]
    marked = {**last, "content": f"{last['content'] if text else ''}{PLACE}"}
    asked = {name: body[name] for name in RENDERED if name in body}
    rendered = await answer("/apply-template", {**asked, "messages": [*before, marked]})
    prompt = rendered["prompt"][: rendered["prompt"].rindex(PLACE)]
    found = await answer("/completion", {"prompt": prompt, **ONE_TOKEN})
    likely = found["completion_probabilities"][0]["top_logprobs"]
    tokens = found.get("timings", {}).get("prompt_n", 0)
    return Reading(ends(likely) if text else 0.0, int(tokens))


async def continued(answer: Answer, body: Mapping[str, Any], text: str) -> Reading:
    """Return the same as `turn_end`, as vLLM tells it."""
    asked = {name: body[name] for name in body if name not in ("stream_options", "tool_choice")}
    found = await answer("chat/completions", asked | GOES_ON)
    likely = found["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    usage = usage_of(found)
    return Reading(ends(likely) if text else 0.0, usage.tokens if usage else 0)


def ends(likely: list[Mapping[str, Any]]) -> float:
    """Return the probability that one of the `likely` next tokens ends the turn: a mark that ends a
    sentence, or a token that steers the model, which may have no text. Raises `OTHER_FORM`."""
    total = 0.0
    for one in likely:
        token, logprob = str(one["token"]), float(one["logprob"])
        steers = STEERS.fullmatch(token) or (not token and not one.get("bytes"))
        if steers or token in ENDS:
            total += math.exp(min(logprob, 0.0))
    if not 0 <= total <= 1.01:  # also not a number
        raise ValueError("these are no probabilities")
    return min(total, 1.0)
