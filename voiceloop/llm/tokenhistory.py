"""The token ids of one conversation with the built-in model, and the dialogue that they stand for.

The ids are in the order `opening, text, user_to_reply, reply, reply_to_user, text, …`. A text is
what the user says. `opening`, `user_to_reply` and `reply_to_user` are the chat template's tokens
around texts and replies. Only texts are tokenised; replies keep the ids that the model chose. An
exchange reaches from the beginning of one text to the beginning of the next. This module does not
know how tokens are decided.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from voiceloop.errors import EngineError
from voiceloop.languages import bare
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.text.messages import TOKEN_CHARS, least
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.llm.text.translation import common
from voiceloop.types import Past, Tool


@dataclass(slots=True)
class _TurnRequest:
    """The user's current turn, as far as it is known."""

    turn: int | None = None
    """The number of the turn; None before the first turn."""
    before: str = ""
    """The text of earlier turns whose replies were cut to nothing. The current turn continues
    it."""
    said: str = ""
    """The user's whole text, with `before` at its beginning."""
    bare: int = 0
    """The number of ids from the beginning of the conversation to the end of the text, without the
    punctuation at the end. 0 if that place is not known."""
    old: Sequence[int] = ()
    """The decided tokens of the last reply to this turn, which a new reply to the turn replaces.
    Empty if there is none or if it may not be used."""


@dataclass(slots=True)
class ReplyState:
    """The reply to the user's last turn, so far. Its fields say where it is in the conversation's
    ids, which "the ids" below means, and what was heard of it."""

    turn: int
    request_end: int
    """The index in the ids just after the user's text."""
    start: int
    """The index in the ids of the reply's first token."""
    chosen: int = 0
    """The number of tokens that the target has decided in this turn, with tokens that end a
    reply."""
    own: list[int] = field(default_factory=list[int])
    """The tokens that the target has decided, up to and with the token that ended the reply. Tokens
    after a tool's result are left out."""
    spoken: list[int] = field(default_factory=list[int])
    """The index in the ids of each token that was sent in a burst."""
    recited: Sequence[int] = ()
    """The tokens that were spoken of an effect, which are not among the ids."""
    calls: int = 0
    text: str = ""
    """The text that was sent in bursts."""
    avoided: int | None = None
    """A token that the reply may not begin with, because a reply that began with it was an echo of
    the user; None if any token is allowed."""
    call: Sequence[int] = ()
    """The ids with which the reply has to begin so that it calls a required tool. After a tool's
    result, the rest of the reply begins with these ids too. Empty if the reply may be text."""
    returned: bool = False
    """Whether a tool has returned its result."""
    finished: bool = False
    limited: bool = False
    """Whether the reply is finished because it reached the limit of tokens."""


class TokenHistory:
    """The ids of a conversation, from the system prompt on. The speculator forgets everything about
    ids that are removed or replaced."""

    def __init__(
        self, speculator: Speculator, template: ChatTemplate, system: str, max_new_tokens: int
    ) -> None:
        self.speculator = speculator
        self.template = template
        self.max_new_tokens = max_new_tokens
        self.ids = template.opening(system)
        self.request = _TurnRequest()
        self.reply: ReplyState | None = None
        """The reply to the user's last turn; None if none was begun."""
        self.call: Sequence[int] = ()
        """The ids with which all calls of the required tools begin; empty if replies may be
        text."""
        self._calls = frozenset[int]()
        """The tokens with which a call begins; empty if no tools are offered."""
        self._starts = [len(self.ids)]
        """The index in the ids of each exchange's user text; the last one is for the current
        exchange."""
        self._reply_tokens: list[frozenset[int]] = []
        """The tokens of the reply of each closed exchange."""

    @property
    def capacity(self) -> int:
        """The maximum number of ids: the size of the context in tokens."""
        return self.speculator.cache.capacity

    @property
    def exchanges(self) -> int:
        """The number of exchanges before the user's current turn."""
        return len(self._starts) - 1

    @property
    def opening(self) -> Sequence[int]:
        """The ids before the first text."""
        return self.ids[: self._starts[0]]

    def rewrite(
        self, system: str, past: Sequence[Past], tools: Sequence[Tool], required: Collection[str]
    ) -> None:
        """Replace all ids. Only the newest exchanges of `past` that fit into half of the context
        are kept."""
        template = self.template
        self.call = template.call_of(required)
        self._calls = template.call_beginnings if tools else frozenset()
        ids = template.opening(system[: TOKEN_CHARS * self.capacity], tools)
        exchanges, room = list[list[int]](), self.capacity // 2 - len(ids)
        for one in reversed(past):
            texts = (part if isinstance(part, str) else part[1] for part in one.replied)
            exchange = template.exchange(one) if least(one.said, *texts) <= room else None
            if exchange is None or len(exchange) > room:
                break
            room -= len(exchange)
            exchanges.insert(0, exchange)
        kept = past[len(past) - len(exchanges) :]
        self.speculator.stats.total.dropped_turns += len(past) - len(kept)
        self._reply_tokens = [
            frozenset(template.words(part for part in one.replied if isinstance(part, str)))
            for one in kept
        ]
        self._starts = [len(ids)]
        for exchange in exchanges:
            ids += exchange
            self._starts.append(len(ids))
        self._replace(0, ids)
        self.request, self.reply = _TurnRequest(), None

    def begin(self, turn: int) -> None:
        """Prepare for the user's `turn`.

        If the turn is new, the reply to the turn before it is looked at. If something of it is
        kept, the exchange is closed. If it was cut to nothing, the text of that turn becomes the
        beginning of the new turn. If it was never begun, that text is dropped.
        """
        reply, self.reply = self.reply, None
        request = self.request
        if turn == request.turn:
            if reply is not None and reply.own:  # an empty reply replaces no earlier one
                request.old = reply.own
            return
        before = request.before
        if reply is not None and len(self.ids) > reply.start:
            self._reply_tokens.append(self._spoken(reply))
            self.ids += self.template.reply_to_user
            self._starts.append(len(self.ids))
            before = ""
        elif reply is not None:
            before = request.said
        self.request = _TurnRequest(turn, before)

    def read(self, text: str) -> None:
        """Let the ids end with `text`, the beginning of the user's words in this turn."""
        self._set_request(text, suffix=[])
        self.request.bare = len(self.ids)

    def open_reply(self, text: str, turn: int) -> ReplyState:
        """Put the user's whole turn at the end of the ids; return the reply that begins there."""
        suffix = self.template.user_to_reply
        self._set_request(text, suffix)
        start, text_start = len(self.ids), self._starts[-1]
        words = self.template.content(bare(self.request.said))
        known = self.ids[text_start : text_start + len(words)] == words
        self.request.bare = text_start + len(words) if known else 0
        self.reply = ReplyState(turn, start - len(suffix), start, call=self.call)
        return self.reply

    def replace_reply(self, reply: ReplyState) -> None:
        """Remove the tokens of the last reply. `reply` replaces it; it is still empty."""
        self.truncate(reply.start)
        self.request.old, self.reply = (), reply

    def add(self, ids: Sequence[int]) -> Sequence[int]:
        """Add those of `ids` that fit into the context. Return them."""
        added = ids[: self.capacity - len(self.ids)]
        self.ids += added
        return added

    def truncate(self, length: int) -> None:
        """Remove the ids from index `length` on."""
        self.speculator.rollback(length)
        del self.ids[length:]

    def cut(self, tokens: int) -> Sequence[int]:
        """Cut the last reply after its first `tokens` spoken tokens, and return the spoken tokens
        that are kept. With 0 nothing is kept, not even tool calls. A finished reply of at most
        `tokens` spoken tokens stays whole."""
        reply, tokens = self.reply, max(tokens, 0)
        if reply is None:
            return ()
        if reply.recited:
            return reply.recited[:tokens]
        if not tokens or not reply.spoken:
            self.truncate(reply.request_end)
        elif tokens < len(reply.spoken) or not reply.finished:
            self.truncate(reply.spoken[:tokens][-1] + 1)
        del reply.spoken[tokens:]
        return [self.ids[place] for place in reply.spoken]

    def prompt(self, reply: ReplyState) -> Prompt:
        """Return the prompt of `reply` or of its continuation: all ids."""
        words = self.ids[self._starts[-1] : reply.request_end]
        return Prompt(
            self.ids,
            reply.turn,
            position=reply.chosen,
            watched=self.request.bare,
            earlier=self.earlier(words, reply if reply.returned else None),
            avoided=reply.avoided,
            calls=frozenset() if reply.call else self._calls,
        )

    def prompt_ahead(self, text: str, turn: int) -> tuple[Prompt, int]:
        """Return the prompt that ends with `text`, and the number of its first ids that are equal
        to those of the conversation. `text` is the beginning of the user's words in `turn`. The
        last reply counts as heard to its end."""
        reply, request, goes_on = self.reply, self.request, turn == self.request.turn
        carried = request.before
        if not goes_on and reply is not None and len(self.ids) > reply.start:
            before, carried = self.ids + self.template.reply_to_user, ""
        else:
            before = self.ids[: self._starts[-1]]
            if not goes_on and reply is not None:
                carried = request.said
        words = self.template.content(f"{carried} {text}".strip())
        ids = [*before, *words]
        earlier = self.earlier(words, None if goes_on else reply)
        return Prompt(ids, turn, earlier=earlier), common(ids, self.ids)

    def earlier(self, words: Sequence[int], reply: ReplyState | None) -> frozenset[int]:
        """Return the tokens of all closed exchanges' replies, of `reply` and of `words`."""
        own = frozenset[int]() if reply is None else self._spoken(reply)
        return own.union(words, *self._reply_tokens)

    def _spoken(self, reply: ReplyState) -> frozenset[int]:
        """Return the tokens of `reply` that were sent in bursts, without those that were cut
        off."""
        return frozenset(self.ids[place] for place in reply.spoken)

    def _set_request(self, text: str, suffix: Sequence[int]) -> None:
        """Replace the ids of the user's turn by those of `text` and `suffix`."""
        whole = f"{self.request.before} {text}".strip()
        if least(whole) > self.capacity:
            raise self.too_long("what the user said")
        tail = [*self.template.content(whole), *suffix]
        self._make_room(len(tail) + len(self.template.user_to_reply) + len(self.call))
        self.request.said = whole
        self._replace(self._starts[-1], tail)

    def _replace(self, start: int, ids: Sequence[int]) -> None:
        """Replace the ids from index `start` on by `ids`. The caches keep the rows of all ids
        before the first one that changes."""
        same = common(self.ids[start:], ids)
        self.truncate(start + same)
        self.ids += ids[same:]

    def _make_room(self, tokens: int) -> None:
        """Forget the oldest exchanges if the context has no room for `tokens` more tokens and a
        reply.

        The exchanges that are kept must be read again. So they get at most half of the context: if
        only one exchange were forgotten each time, every later turn would read the whole context
        again. Raises EngineError if the context has no room even without exchanges.
        """
        wanted = tokens + min(self.max_new_tokens, self.capacity // 4)
        if self._starts[0] + tokens >= self.capacity:
            raise self.too_long("what the user said")
        if self._starts[-1] + wanted <= self.capacity:
            return
        most = min(self.capacity // 2, self.capacity - wanted)
        while self._starts[-1] > most and len(self._starts) > 1:
            first, second = self._starts[:2]
            self.speculator.rollback(first)
            del self.ids[first:second]
            self._starts = [first, *(start - second + first for start in self._starts[2:])]
            del self._reply_tokens[0]
            self.speculator.stats.total.dropped_turns += 1

    def too_long(self, what: str) -> EngineError:
        """Return the error for `what` not fitting into the context."""
        return EngineError(
            f"{what} does not fit into a context of {self.capacity} tokens",
            "say less, or raise llm.context",
        )
