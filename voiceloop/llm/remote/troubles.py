"""Make the errors of requests to a server of chat completions, each with a one-line message and a
hint.

At most `QUOTED` characters of a server's message are passed on, and never the key. This module
sends nothing.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator

from voiceloop.errors import EngineError
from voiceloop.llm.remote.address import USUAL, Address
from voiceloop.llm.remote.complaints import Complaint

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


class Trouble(EngineError):
    """The error of a request that failed or broke off."""

    def __init__(
        self,
        message: str,
        hint: str,
        *,
        again_s: float | None = None,
        too_long: bool = False,
        lost: bool = False,
        spent: bool = False,
        loads: bool = False,
        status: int | None = None,
        complaint: Complaint | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.again_s = again_s
        """Seconds after which another attempt may help; None if none would help."""
        self.too_long = too_long
        """Whether the conversation does not fit into the model's context."""
        self.lost = lost
        """Whether the server may have gone."""
        self.spent = spent
        """Whether the reply used up its tokens before any text came."""
        self.loads = loads
        """Whether the server still loads its model, so that it is worth asking until it has."""
        self.complaint = complaint
        """The server's error, if an adapted request may help; otherwise None."""
        self.status = status
        """HTTP status of the response. None if there was no response, or if the error has a more
        specific cause."""


def unreachable(where: Address, error: Exception) -> Trouble:
    """Return the error for a connection that could not be made."""
    causes = list(_causes(error))
    broken = next((one for one in causes if isinstance(one, ssl.SSLError)), None)
    if broken is not None:
        why = re.sub(r"^\[.*?\] | \(_ssl.*\)$", "", str(broken))
        return Trouble(
            f"{where.told} cannot be reached safely ({why})",
            "does it speak https at all? SSL_CERT_FILE names certificates of your own",
        )
    named = not any(isinstance(one, socket.gaierror) for one in causes)
    why = "" if named else ": there is no host of that name"
    if named and where.loopback:
        why = f": start it with `{where.kind.starts}`" if where.kind else ": start it"
    without = "; talk and serve go without it by --llm-server none" if where.loopback else ""
    hint = f"{USUAL}{without}"
    return Trouble(f"{where.told} does not answer{why}", hint, again_s=AGAIN_S, lost=True)


def broke_off(where: Address, why: str) -> Trouble:
    """Return the error for a connection that ended before the response did."""
    return Trouble(
        f"{where.told} broke off ({quoted(where, why)})",
        "ask again; if it stays so, see the server's log",
        again_s=AGAIN_S,
        lost=True,
    )


def silent(where: Address, seconds: float, *, again: bool) -> Trouble:
    """Return the error for a server that has sent nothing for `seconds`. `again` says whether
    another attempt may help."""
    return Trouble(
        f"{where.told} has said nothing for {seconds:g} s",
        "see the server's log; llm.timeout_s is how long to wait",
        again_s=0.0 if again else None,
        lost=True,
    )


def no_such_server(where: Address, kind: str) -> Trouble:
    """Return the error for a server that is no server of chat completions. `kind` is the content
    type of its response."""
    plain = kind.partition(";")[0] or "something else"
    return Trouble(
        f"{where.told} answers with {quoted(where, plain)}, not as a model's server does",
        f"check llm.base_url, which mostly ends in /v1: {USUAL}",
    )


def refused(where: Address, status: int | None, complaint: Complaint) -> Trouble:
    """Return the error for a refusal. `status` is the HTTP status; None if the refusal came within
    a reply that had begun."""
    why = complaint.said
    host, key = where.told, where.key_name
    if status is not None and 300 <= status < 400:
        return Trouble(
            f"{host} sends us elsewhere ({status}), where nothing is sent",
            "write the address that it means into llm.base_url",
        )
    if status in (401, 403):
        # The server's message may contain the key.
        what = "refuses the key" if where.key else "wants a key"
        return Trouble(f"{host} {what} ({status})", f"set {key} in the environment")
    if status == 413 or _TOO_LONG.search(f"{why} {complaint.named.replace('_', ' ')}"):
        why = why or complaint.named
        return Trouble(
            f"what was said does not fit into the model's context{_because(where, why)}",
            "say less, or give the server's model a longer context",
            too_long=True,
        )
    spent = _SPENT.search(why) is not None
    if status == 404:
        return Trouble(
            f"{host} knows no such address (404): {where.url}",
            f"llm.base_url mostly ends in /v1: {USUAL}",
            status=status,
            complaint=complaint,
        )
    answers = f"answers {status}" if status else "has failed"
    again_s = None if status and status < 500 else AGAIN_S
    return Trouble(
        f"{host} {answers}{_because(where, why)}",
        "see the server's log",
        again_s=again_s,
        spent=spent,
        status=status,
        complaint=None if spent else complaint,
    )


def cut_off(tokens: int, *, spent: bool) -> Trouble:
    """Return the error for a model that thought for `tokens` tokens. With `spent`, it used up the
    tokens of its reply; otherwise, it thought longer than is allowed."""
    return Trouble(
        f"the model came to no end: it thought for {tokens} tokens and was cut off",
        "llm.max_thought_tokens is how long it may think, and llm.thinking = off asks it not to",
        spent=spent,
    )


def busy(where: Address, status: int, after: str, why: str) -> Trouble:
    """Return the error for a busy server. `after` is the value of its header Retry-After, in
    seconds; it may be empty. `why` is the server's message."""
    seconds = float(after) if re.fullmatch(r"\d{1,6}(\.\d+)?", after) else None
    wait = "" if seconds is None else f", and wants to be left alone for {seconds:g} s"
    again_s = BUSY_S if seconds is None else seconds
    return Trouble(
        f"{where.told} has too much to do ({status}){wait}{_because(where, why)}",
        "wait a little, or see what your plan allows",
        again_s=again_s if again_s <= PATIENCE_S else None,
    )


def loading(where: Address, why: str) -> Trouble:
    """Return the error for a server that still loads its model. `why` is the server's message."""
    return Trouble(
        f"{where.told} still loads its model{_because(where, why)}",
        "ask again in a moment; llm.timeout_s is how long to wait for it",
        again_s=BUSY_S,
        loads=True,
    )


def quoted(where: Address, text: str) -> str:
    """Return `text`, which a server sent, on one line of at most `QUOTED` characters and without
    the key."""
    plain = " ".join((text.replace(where.key, "…") if where.key else text).split())
    plain = "".join(char for char in plain if char.isprintable())
    return plain if len(plain) <= QUOTED else f"{plain[:QUOTED]}…"


def _because(where: Address, why: str) -> str:
    return f": {quoted(where, why)}" if why else ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield `error`, then its cause, then the cause of that cause, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
