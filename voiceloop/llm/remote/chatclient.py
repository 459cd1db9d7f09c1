"""Send requests to a server of chat completions, and ask what it tells beside replies: the names of
its models, and how likely it is that the user's turn is over.

llama.cpp's server and vLLM tell the probabilities of the tokens that may come after the user's
words, and fill their prompt cache by that. llama.cpp's server renders the prompt first, which is
then cut after the words. vLLM continues the last message itself (`continue_final_message`); SGLang
does so only for messages of the assistant. Every failure is a `RequestError` with a one-line
message. This module composes no requests for replies.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from voiceloop.errors import ConfigError
from voiceloop.foreign import entries, mapping, parsed
from voiceloop.llm.remote import errors
from voiceloop.llm.remote.chatstream import usage_of
from voiceloop.llm.remote.errors import ReportedError, RequestError, error_in
from voiceloop.llm.remote.servers import Address
from voiceloop.llm.text.template import BREAKS, MARKS
from voiceloop.settings.schema import nearest

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 5.0
"""Seconds in which a server must accept a connection. In `look_up` it must also list its models in
this time."""
MOST_TOLD, MOST_LISTED = 65_536, 16 << 20
"""Maximum numbers of bytes that are read of a response: `MOST_TOLD` of an error, `MOST_LISTED` of a
list of models or of a reply that is not streamed."""
VLLM = re.compile(rb'"owned_by"\s*:\s*"vllm"')
"""What only vLLM's list of models has."""
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


class ChatClient:
    """An HTTP client of one server. Its methods are called on one event loop."""

    def __init__(self, where: Address) -> None:
        """Make the client. Raises ConfigError if the environment sets proxies or certificates that
        cannot be used."""
        import httpx2

        self.where = where
        self.models: list[str] = []
        """Names of the server's models; empty before `look_up` has requested them."""
        self.watched = False
        """Whether a task waits for the return of the server, because it may have gone."""
        self._is_vllm = False
        try:
            self._client = httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {where.key}"} if where.key else {},
                timeout=httpx2.Timeout(None, connect=CONNECT_S),
                limits=httpx2.Limits(max_connections=None),
                # A proxy between two programs of one machine would see the key.
                mounts={"http://": None, "https://": None} if where.loopback else None,
                follow_redirects=False,
            )
        except Exception as error:  # of any kind; its text may hold the proxy's password
            what = "what the environment says of proxies or certificates cannot be used"
            hint = "see HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE"
            raise ConfigError(f"{what} ({type(error).__name__})", hint) from None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def look_up(self) -> None:
        """Request the list of `models`. Raises RequestError."""
        with anyio.move_on_after(CONNECT_S) as scope:
            async with self.requested("models") as answer:
                content = await _beginning(answer, MOST_LISTED)
                self.models, self._is_vllm = _listed(content), VLLM.search(content) is not None
                if not self.models and "json" not in _kind(answer):
                    raise errors.no_such_server(self.where, _kind(answer))
        if scope.cancelled_caught:
            raise errors.silent(self.where, CONNECT_S, again=True)

    async def turn_end(self, body: Mapping[str, Any], text: str) -> Reading:
        """Let the server read the messages in `body`, and tell the probability that the user's turn
        is over after `text`, the end of the last message. If `text` is empty, only what is before
        it is read, and the probability is 0. Raises RequestError, and `OTHER_FORM`."""
        if self._is_vllm:
            asked = {key: body[key] for key in body if key not in ("stream_options", "tool_choice")}
            found = await self._answer("chat/completions", asked | GOES_ON)
            likely = found["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            usage = usage_of(found)
            return Reading(ends(likely) if text else 0.0, usage.tokens if usage else 0)
        *before, last = body["messages"]
        marked = {**last, "content": f"{last['content'] if text else ''}{PLACE}"}
        asked = {name: body[name] for name in RENDERED if name in body}
        rendered = await self._answer("/apply-template", {**asked, "messages": [*before, marked]})
        prompt = rendered["prompt"][: rendered["prompt"].rindex(PLACE)]
        found = await self._answer("/completion", {"prompt": prompt, **ONE_TOKEN})
        likely = found["completion_probabilities"][0]["top_logprobs"]
        tokens = found.get("timings", {}).get("prompt_n", 0)
        return Reading(ends(likely) if text else 0.0, int(tokens))

    async def _answer(self, path: str, body: Mapping[str, Any]) -> Any:
        async with self.requested(path, body) as answer:
            return parsed(await _beginning(answer, MOST_LISTED))

    async def events(self, answer: httpx2.Response) -> AsyncGenerator[bytes]:
        """Yield the bytes of the event stream. If the reply is not streamed, yield it as a single
        event."""
        if "event-stream" in (_kind(answer) or "event-stream"):
            async for block in answer.aiter_bytes():
                yield block
            return
        content = await _beginning(answer, MOST_LISTED) if "json" in _kind(answer) else b""
        try:
            body = parsed(content)
        except ValueError:
            body = None
        if not isinstance(body, dict) or not (body.get("choices") or error_in(body).said):
            raise errors.no_such_server(self.where, _kind(answer))
        yield b"data: %s\n\ndata: [DONE]\n\n" % b" ".join(content.splitlines())

    @asynccontextmanager
    async def requested(
        self, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request and yield its response. Raises RequestError, also while the caller reads
        the response."""
        import httpx2

        # llama.cpp's own requests are not below /v1.
        root = self.where.url.removesuffix("/v1") if path.startswith("/") else f"{self.where.url}/"
        method, content, headers = "GET", None, None
        if body is not None:
            method, content = "POST", json.dumps(body)
            headers = {"Content-Type": "application/json"}
        stream = self._client.stream(method, f"{root}{path}", content=content, headers=headers)
        try:
            async with stream as answer:
                if answer.status_code != 200:
                    raise await self._refusal(answer, str(body.get("model", "")) if body else "")
                yield answer
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise errors.unreachable(self.where, error) from None
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            why = str(error).strip().rstrip(".") or type(error).__name__
            raise errors.broke_off(self.where, why) from None

    async def _refusal(self, answer: httpx2.Response, model: str) -> RequestError:
        content = await _beginning(answer)
        try:
            reported = error_in(parsed(content))
        except ValueError:
            plain = content.decode("utf-8", "replace").strip()
            reported = ReportedError("" if plain.startswith("<") else plain)
        status, why = answer.status_code, reported.said
        after = answer.headers.get("Retry-After", "")
        if status == 503 and "loading" in why.lower():
            return errors.loading(self.where, why)
        if status == 429 or (status == 503 and after):
            return errors.busy(self.where, status, after, why)
        if status == 404 and model and "model" in why.lower():
            told = f": {errors.quoted(self.where, why)}"
            what = f"{self.where.told} has no model called '{model}' (404){told}"
            return RequestError(what, self.instead_of(model))
        return errors.refused(self.where, status, reported)

    def instead_of(self, model: str) -> str:
        """Return a hint for the user if the server does not know `model`. It names a similar model,
        or some of the server's models, or the server's log."""
        near = nearest(model, self.models)
        some = ", ".join(self.models[:8])
        return f"did you mean '{near}'?" if near else f"it has: {some}" if some else "see its log"


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


def _kind(answer: httpx2.Response) -> str:
    """Return the content type of a response."""
    return answer.headers.get("Content-Type", "")


async def _beginning(answer: httpx2.Response, most: int = MOST_TOLD) -> bytes:
    """Return the beginning of a response's body. Reading stops once there are `most` bytes or
    more."""
    content = b""
    async for block in answer.aiter_bytes():
        content += block
        if len(content) >= most:
            break
    return content


def _listed(content: bytes) -> list[str]:
    """Return the names in a list of models. Return none if the list is incomplete or has an unknown
    form."""
    try:
        listed = parsed(content)
    except ValueError:
        return []
    if isinstance(listed, dict):
        listed = listed.get("data") or listed.get("models")
    found = map(mapping, entries(listed))
    names = (one.get("id") or one.get("name") for one in found)
    return [name for name in names if isinstance(name, str) and name.isprintable()]
