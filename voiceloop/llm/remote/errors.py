"""Read the error messages of servers of chat completions, in all the forms that servers use, and
make the errors of requests, each with a one-line message and a hint.

At most `QUOTED` characters of a server's message are passed on, and never the key. This module
sends nothing.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Literal

from voiceloop.errors import EngineError
from voiceloop.foreign import entries, mapping
from voiceloop.llm.remote.servers import USUAL, Address

DEEPEST = 8
"""Maximum number of nested objects or lists in which a message is looked for."""
SAYING = (
    *("error", "errors", "message", "msg", "detail", "details", "description", "reason"),
    *("error_message", "errorMessage", "error_msg", "error_description", "title", "text"),
)
"""Keys of a response that may hold the error message. The first key with text is used."""
NAMING = ("code", "type", "param", "loc")
"""Keys of a response that may hold the kind of error, or the parameter that it is about."""


class Garbled(ValueError):
    """Data that is not a stream of chat completions."""


class ReportedError(Exception):
    """An error that a server reports. `said` is the server's message."""

    def __init__(self, said: str, named: str = "") -> None:
        super().__init__(said)
        self.said = said
        self.named = named
        """Code, type and parameter in the server's response, separated by spaces."""


def error_in(body: object) -> ReportedError:
    """Return the error in `body`, a server's response decoded from JSON. Its message is empty if
    there is none."""
    return ReportedError(_message(body, 0), " ".join(_named(body, 0)))


def reported_error(chunk: Mapping[str, Any], event: str = "") -> ReportedError | None:
    """Return the error in a chunk of a reply; None if there is none. `event` is the name of the
    server-sent event that contained the chunk."""
    choice = mapping(next(iter(entries(chunk.get("choices"))), None))
    if choice.get("error") or choice.get("finish_reason") == "error":
        return error_in({"error": chunk.get("error") or choice.get("error") or ""})
    told = "error" in event or any(chunk.get(key) for key in ("error", "errors"))
    if not told and not choice and chunk.get("object") in (None, "error"):
        # Such a chunk has no key for errors. Some servers write `code: 200` where all is well.
        told = _message(chunk, 0) and chunk.get("code") not in (0, 200)
    return error_in(chunk) if told else None


def _message(body: object, depth: int) -> str:
    body = next(iter(entries(body)), body)
    if isinstance(body, str):
        return " ".join(body.split())
    table = mapping(body) if depth <= DEEPEST else {}
    found = (_message(table[key], depth + 1) for key in SAYING if key in table)
    return next(filter(None, found), "")


def _named(body: object, depth: int) -> list[str]:
    if depth > DEEPEST:
        return []
    words = [word for one in entries(body)[:DEEPEST] for word in _named(one, depth + 1)]
    for key, value in mapping(body).items():
        if key in NAMING:
            every = entries(value) or [value]
            words += [str(one) for one in every[:DEEPEST] if isinstance(one, str | int)]
        elif key in SAYING:
            words += _named(value, depth + 1)
    return words


# The errors of requests --------------------------------------------------------------------------

AGAIN_S = 0.5
"""Seconds until a failed request is repeated, unless the server tells another time."""
BUSY_S = 1.0
"""Seconds until a busy or loading server is asked again, unless it tells another time."""
PATIENCE_S = 3.0
"""Longest wait that a busy server may ask for, in seconds. If it asks for more, the request
fails."""
QUOTED = 200
"""Maximum number of characters quoted from a server's message."""
_TOO_LONG = re.compile(
    r"context.{0,24}(length|size|window|limit|exceed|overflow)"
    r"|(exceed|overflow|maximum|max).{0,40}context"
    r"|(prompt|input|message|request|conversation)s?\b.{0,24}too (long|large)"
    r"|(prompt|input|token)s?\b.{0,60}(exceed|longer than|more than).{0,40}(max|limit|length|\d)"
    r"|too many (input )?tokens|reduce the (length|size) of"
    r"|(prompt|input).{0,12}tokens.{0,40}must be (<|at most|less)",
    re.IGNORECASE,
)
"""A pattern of messages which say that a conversation does not fit into the model's context. It is
used for all servers."""
_SPENT = re.compile(r"could not finish|output limit was reached|try again with (a )?higher", re.I)
"""A pattern of messages which say that a reply has used up its tokens."""


FailureKind = Literal["lost", "loading", "too_long", "spent", "other"]
"""What a failed request means: the server may have gone; it still loads its model, so it is worth
asking until it has; the conversation does not fit into the model's context; the reply used up its
tokens before any text came; anything else."""


class RequestError(EngineError):
    """The error of a request that failed or broke off."""

    def __init__(
        self,
        message: str,
        hint: str,
        kind: FailureKind = "other",
        *,
        again_s: float | None = None,
        status: int | None = None,
        reported: ReportedError | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.kind: FailureKind = kind
        self.again_s = again_s
        """Seconds after which another attempt may help; None if none would help."""
        self.reported = reported
        """The server's error, if an adapted request may help; otherwise None."""
        self.status = status
        """HTTP status of the response. None if there was no response, or if the error has a more
        specific cause."""


def unreachable(where: Address, error: Exception) -> RequestError:
    """Return the error for a connection that could not be made."""
    causes: list[BaseException] = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    broken = next((one for one in causes if isinstance(one, ssl.SSLError)), None)
    if broken is not None:
        why = re.sub(r"^\[.*?\] | \(_ssl.*\)$", "", str(broken))
        return RequestError(
            f"{where.told} cannot be reached safely ({why})",
            "does it speak https at all? SSL_CERT_FILE names certificates of your own",
        )
    named = not any(isinstance(one, socket.gaierror) for one in causes)
    why = "" if named else ": there is no host of that name"
    if named and where.loopback:
        why = f": start it with `{where.kind.starts}`" if where.kind else ": start it"
    without = "; talk and serve go without it by --llm-server none" if where.loopback else ""
    hint = f"{USUAL}{without}"
    return RequestError(f"{where.told} does not answer{why}", hint, "lost", again_s=AGAIN_S)


def broke_off(where: Address, why: str) -> RequestError:
    """Return the error for a connection that ended before the response did."""
    return RequestError(
        f"{where.told} broke off ({quoted(where, why)})",
        "ask again; if it stays so, see the server's log",
        "lost",
        again_s=AGAIN_S,
    )


def silent(where: Address, seconds: float, *, again: bool) -> RequestError:
    """Return the error for a server that has sent nothing for `seconds`. `again` says whether
    another attempt may help."""
    return RequestError(
        f"{where.told} has said nothing for {seconds:g} s",
        "see the server's log; llm.timeout_s is how long to wait",
        "lost",
        again_s=0.0 if again else None,
    )


def no_such_server(where: Address, kind: str) -> RequestError:
    """Return the error for a server that is no server of chat completions. `kind` is the content
    type of its response."""
    plain = kind.partition(";")[0] or "something else"
    return RequestError(
        f"{where.told} answers with {quoted(where, plain)}, not as a model's server does",
        f"check llm.base_url, which mostly ends in /v1: {USUAL}",
    )


def refused(where: Address, status: int | None, reported: ReportedError) -> RequestError:
    """Return the error for a refusal. `status` is the HTTP status; None if the refusal came within
    a reply that had begun."""
    why, host = reported.said, where.told
    if status is not None and 300 <= status < 400:
        return RequestError(
            f"{host} sends us elsewhere ({status}), where nothing is sent",
            "write the address that it means into llm.base_url",
        )
    if status in (401, 403):
        # The server's message may contain the key.
        what = "refuses the key" if where.key else "wants a key"
        return RequestError(f"{host} {what} ({status})", f"set {where.key_name} in the environment")
    if status == 413 or _TOO_LONG.search(f"{why} {reported.named.replace('_', ' ')}"):
        why = why or reported.named
        return RequestError(
            f"what was said does not fit into the model's context{_because(where, why)}",
            "say less, or give the server's model a longer context",
            "too_long",
        )
    if status == 404:
        return RequestError(
            f"{host} knows no such address (404): {where.url}",
            f"llm.base_url mostly ends in /v1: {USUAL}",
            status=status,
            reported=reported,
        )
    spent = _SPENT.search(why) is not None
    answers = f"answers {status}" if status else "has failed"
    return RequestError(
        f"{host} {answers}{_because(where, why)}",
        "see the server's log",
        "spent" if spent else "other",
        again_s=None if status and status < 500 else AGAIN_S,
        status=status,
        reported=None if spent else reported,
    )


def cut_off(tokens: int, *, spent: bool) -> RequestError:
    """Return the error for a model that thought for `tokens` tokens. With `spent`, it used up the
    tokens of its reply; otherwise, it thought longer than is allowed."""
    return RequestError(
        f"the model came to no end: it thought for {tokens} tokens and was cut off",
        "llm.max_thought_tokens is how long it may think, and llm.thinking = off asks it not to",
        "spent" if spent else "other",
    )


def busy(where: Address, status: int, after: str, why: str) -> RequestError:
    """Return the error for a busy server. `after` is the value of its header Retry-After, in
    seconds; it may be empty. `why` is the server's message."""
    seconds = float(after) if re.fullmatch(r"\d{1,6}(\.\d+)?", after) else None
    wait = "" if seconds is None else f", and wants to be left alone for {seconds:g} s"
    again_s = BUSY_S if seconds is None else seconds
    return RequestError(
        f"{where.told} has too much to do ({status}){wait}{_because(where, why)}",
        "wait a little, or see what your plan allows",
        again_s=again_s if again_s <= PATIENCE_S else None,
    )


def loading(where: Address, why: str) -> RequestError:
    """Return the error for a server that still loads its model. `why` is the server's message."""
    return RequestError(
        f"{where.told} still loads its model{_because(where, why)}",
        "ask again in a moment; llm.timeout_s is how long to wait for it",
        "loading",
        again_s=BUSY_S,
    )


def quoted(where: Address, text: str) -> str:
    """Return `text`, which a server sent, on one line of at most `QUOTED` characters and without
    the key."""
    plain = " ".join((text.replace(where.key, "…") if where.key else text).split())
    plain = "".join(char for char in plain if char.isprintable())
    return plain if len(plain) <= QUOTED else f"{plain[:QUOTED]}…"


def _because(where: Address, why: str) -> str:
    return f": {quoted(where, why)}" if why else ""
