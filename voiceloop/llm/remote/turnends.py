"""Ask llama.cpp's server how likely it is that the user's turn is over.

The server renders the prompt by its chat template, which is cut after the user's words, and tells
the probabilities of the tokens that may come next. This also fills its prompt cache. This module
sends nothing itself.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from voiceloop.llm.text.template import MARKS

RENDERED = ("tools", "chat_template_kwargs", "reasoning_effort")
"""What of a request, beside the messages, a chat template may use."""
ONE_TOKEN = {"n_predict": 1, "n_probs": 40, "cache_prompt": True, "temperature": 0.0}
PLACE = "\ue000\ue001"
"""The end of the user's words in a rendered prompt."""
OTHER_FORM = (ValueError, LookupError, TypeError, AttributeError)
"""The errors of an answer that has another form than that of llama.cpp's server."""


async def turn_end(
    answer: Callable[[str, Mapping[str, Any]], Awaitable[Any]], body: Mapping[str, Any], text: str
) -> float:
    """Return the probability that the user's turn is over after `text`, the end of the last message
    in `body`. If `text` is empty, only what is before it is read, and the result is 0.

    `answer` sends a request and returns the answer's JSON. Raises its errors, and `OTHER_FORM`.
    """
    *before, last = body["messages"]
    marked = {**last, "content": f"{last['content'] if text else ''}{PLACE}"}
    asked = {name: body[name] for name in RENDERED if name in body}
    rendered = await answer("/apply-template", {**asked, "messages": [*before, marked]})
    prompt = rendered["prompt"][: rendered["prompt"].rindex(PLACE)]
    found = await answer("/completion", {"prompt": prompt, **ONE_TOKEN})
    likely = found["completion_probabilities"][0]["top_logprobs"]
    return ends(likely) if text else 0.0


def ends(likely: list[Mapping[str, Any]]) -> float:
    """Return the probability that one of the `likely` next tokens ends the turn: a mark that ends a
    sentence, or a token without text, which steers the model. Raises `OTHER_FORM`."""
    total = 0.0
    for one in likely:
        token, logprob = str(one["token"]), float(one["logprob"])
        steers = not token and not one.get("bytes")
        if steers or (token[:1] in (*MARKS,) and not token.strip(f"{MARKS} \n")):
            total += math.exp(min(logprob, 0.0))
    if not 0 <= total <= 1.01:  # also not a number
        raise ValueError("these are no probabilities")
    return min(total, 1.0)
