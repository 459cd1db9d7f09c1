"""Hold conversations with a language model on any server with OpenAI's chat completions API.

Each request contains the whole history; the server's prompt cache makes that cheap. This module
does not know how requests are sent.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from random import SystemRandom

from voiceloop.engines import Steps
from voiceloop.errors import ConfigError
from voiceloop.llm.chat import ChatConversation, ChatReply, MessageLlm
from voiceloop.llm.remote.chatrequest import accepted, called, composed, offered, renamed
from voiceloop.llm.remote.chatserver import ChatServer, logger
from voiceloop.llm.remote.chatstream import (
    End,
    FirstWords,
    Loading,
    Piece,
    PromptUsage,
    StreamedCall,
    Text,
    Thought,
)
from voiceloop.llm.remote.errors import RequestError, cut_off
from voiceloop.llm.remote.readahead import ReadAhead
from voiceloop.llm.remote.servers import OPENAI, USUAL, address
from voiceloop.llm.text.calls import written
from voiceloop.llm.text.leaks import Leaks
from voiceloop.llm.text.messages import Message
from voiceloop.llm.text.parts import MARKS, THOUGHTS, Parts, ReplyPart
from voiceloop.settings.config import LlmConfig
from voiceloop.types import FILTERED, LOADS, Past, TokenBurst, Tool, ToolCall

OPENING, NOTHING_YET = "Hello there.", "…"
"""What stands for the user's words: in the first request of all, and where the user has not spoken
yet."""
LETTERS = 8
"""Upper estimate of the average number of characters in a token. It serves to estimate numbers of
tokens from texts, because pieces of text may contain any number of tokens."""
_ENDS = frozenset(THOUGHTS.values())


class RemoteConversation(ChatConversation):
    """A conversation with a server's model."""

    def __init__(self, server: ChatServer, config: LlmConfig, system: str, seed: int) -> None:
        super().__init__(system)
        self._server = server
        self._config = config
        self.seed = seed if config.temperature else None
        """Seed of the sampling; None at temperature 0. The server may ignore it."""
        self._quirks = server.quirks.copied()
        self._effort: str | None = None
        """The `effort` at the last `rewrite`."""
        self._ahead = ReadAhead(server)

    def calls(self, tools: Sequence[Tool]) -> bool:
        """Return True: the server takes care of tool calls."""
        return True

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        """Replace the system prompt, the history and the tools. The server may take the new tools
        and the new effort even if it has refused the old ones."""
        refused = self._quirks.left_out
        if self.effort != self._effort:
            refused.discard("reasoning_effort")
            self._effort = self.effort
        if tools != self._tools:
            refused -= {"tools", "tool_choice"} - self._server.quirks.left_out
        super().rewrite(system, past, tools, required)

    def warm(self) -> None:
        """Let the server load its model and begin a reply of one token, and wait for its first
        data. Raises RequestError, but not if the model spends that token on thinking."""
        self._set_request(OPENING, 0)
        request = self._request(self._names(), most=1)
        try:
            with closing(self._server.ask(request, self._server.quirks)) as answer:
                while (pieces := answer.next()) is not None:
                    if not all(isinstance(piece, Loading) for piece in pieces):
                        break
        except RequestError as failure:
            if failure.kind != "spent":
                raise
        if not self._server.where.metered:
            self._server.learn_ends(request, OPENING)

    def prefill(self, text: str, turn: int) -> Steps[None]:
        """Let the server read the history and the user's words `text` ahead. This waits for the
        server only if it tells the end probability."""
        self._set_request(text, turn)
        request = self._request(self._names(), most=1)
        if not text:
            if not request["messages"]:
                return
            request["messages"].append({"role": "user", "content": NOTHING_YET})
        found = yield from self._ahead.read(request, text, turn, self._quirks)
        self._count(found.tokens)
        self._note(end_probability=found.ends if text else None)

    def close(self) -> None:
        """Stop the server from reading ahead."""
        self._ahead.end()

    def answer(self, reply: ChatReply) -> Steps[TokenBurst | ToolCall]:
        """Request `reply`, or the rest of it.

        If the history does not fit, the older half of it is forgotten and the request is repeated.
        Half is forgotten because the next turns need room too. If the model's thoughts used up the
        tokens, the request is repeated with more tokens, for thoughts.
        """
        reply.finished = False
        known, roomy = len(reply.parts), self._thinks
        try:
            yield from self._request_reply(reply)
        except RequestError as failure:
            forgetful = failure.kind == "too_long" and self._before
            spent = failure.kind == "spent" and not roomy
            if len(reply.parts) > known or not (forgetful or spent):
                raise
            if forgetful:
                del self._before[: (len(self._before) + 1) // 2]
            yield from self._request_reply(reply)

    @property
    def _thinks(self) -> bool:
        """Whether requests allow additional tokens for thoughts."""
        asked = self.effort or self._config.thinking == "on"
        return bool(asked) or self._quirks.thinks

    def _request_reply(self, reply: ChatReply) -> Steps[TokenBurst | ToolCall]:
        self._count(self._ahead.end().tokens)
        known, first_s, cached = len(reply.parts), 0.0, None
        incoming = Incoming(self._config.stop, thinking=self._quirks.opens_in_thought)
        most = reply.words + self._config.max_new_tokens
        names = self._names()
        own = {sent: name for name, sent in names.items()}
        with closing(self._server.ask(self._request(names), self._quirks)) as answer:
            while (pieces := answer.next()) is not None:
                yield None  # lets other work go on, also while the model thinks
                for piece in pieces:
                    if isinstance(piece, FirstWords):
                        first_s = piece.after_s
                        continue
                    if isinstance(piece, PromptUsage):
                        self._count(piece.tokens)
                        cached = piece.cached
                    elif isinstance(piece, Loading):
                        yield TokenBurst(reply.turn, (), "", facts={LOADS: 1})
                    yield from _outputs(incoming.push(piece), reply, own)
                    self._learn(incoming)
                    if incoming.over or reply.words >= most:
                        reply.finished = True  # even if the server would send more
                        self._note(limited=not incoming.over)
                        return
                    if incoming.silence > self._config.max_thought_tokens:
                        raise cut_off(incoming.thought, spent=False)
        self._ahead.replied(first_s, cached)
        yield from _outputs(incoming.finish(), reply, own)
        if incoming.filtered:
            yield TokenBurst(reply.turn, (), "", facts={FILTERED: 1})
        if incoming.cut and len(reply.parts) == known:
            self._quirks.thinks = True
            raise cut_off(incoming.thought, spent=True)
        reply.finished = True
        self._note(limited=incoming.cut)

    def _count(self, tokens: int) -> None:
        """Note that the server has read `tokens` more tokens."""
        self._note(tokens_read=self.standing.tokens_read + tokens)

    def _learn(self, incoming: Incoming) -> None:
        """Store whether the server's model thinks, and whether its replies begin inside a
        thought."""
        quirks = self._quirks
        quirks.thinks = quirks.thinks or incoming.thought > 0
        if incoming.lone and not quirks.opens_in_thought:
            quirks.opens_in_thought = True
            logger.warning(
                "%s does not mark where its model begins to think, so some of that was said; from "
                "now on replies are taken to begin with it",
                self._server.where.told,
            )

    def _names(self) -> dict[str, str]:
        """Return the name under which the server knows each tool that is offered or was called."""
        offered = [tool.name for tool in self._tools]
        return accepted([*offered, *self._required, *called(self.messages())])

    def _request(self, names: Mapping[str, str], most: int | None = None) -> Message:
        """Return the request for the next reply, with the tools under their `names`. `most` is the
        maximum number of its tokens, which replaces the configured limit if given."""
        config, official = self._config, self._server.where.host == OPENAI
        messages = [renamed(message, names) for message in self.messages()]
        room = config.max_thought_tokens if self._thinks else 0
        tokens = config.max_new_tokens + room if most is None else most
        request = composed(config, messages, tokens=tokens, official=official)
        if self.effort is not None:
            request["reasoning_effort"] = self.effort
            request.pop("chat_template_kwargs", None)
        if self.seed is not None:
            request["seed"] = self.seed
        parallel = self.parallel_calls
        return request | offered(self._tools, tuple(self._required), names, parallel=parallel)


def _outputs(
    parts: Sequence[ReplyPart | StreamedCall], reply: ChatReply, own: Mapping[str, str]
) -> Iterator[TokenBurst | ToolCall]:
    """Yield the text and the tool calls in `parts`. Calls in the text count too. `own` maps the
    names of tools in requests to the tools' own names."""
    for part in parts:
        if isinstance(part, StreamedCall):
            read = written(part.name, part.arguments)
            name = own.get(part.name, part.name)
            yield reply.call(name, read.arguments, read.problem, part.id)
        else:
            calls = tuple(call._replace(name=own.get(call.name, call.name)) for call in part.calls)
            yield from reply.take(replace(part, calls=calls))


class Incoming:
    """A parser of one response. Call `push` with its pieces, then `finish` once."""

    def __init__(self, stop: Sequence[str] = (), *, thinking: bool = False) -> None:
        """`thinking` says that the reply probably begins inside a thought without a start mark."""
        self.thought = 0
        """Number of thought tokens: an estimate, or the server's count if that is larger."""
        self.lone = False
        """Whether the end mark of a thought came without a start mark. Then the thought was taken
        for speech."""
        self.cut = False
        """Whether the reply was cut off at its token limit."""
        self.filtered = False
        """Whether a filter of the server has cut the reply off."""
        self._stop = stop
        self._parts = Parts(thinking=thinking, stop=stop)
        self._leaks = Leaks()
        self._silent = 0
        """Number of thoughts without text. They only show that the server is at work."""
        self._pending = 0
        """Number of characters that may still turn out to be speech, a thought or a call."""
        self._spoke = False
        self._within = thinking
        """Whether the text is inside a thought."""
        self._supposed: list[str] | None = [] if thinking else None
        """All text so far, while it is taken for a thought. None if the reply is not supposed to
        begin inside a thought, or once the end of a thought has come."""

    @property
    def over(self) -> bool:
        """Whether the reply is over, so that later text does not belong to it."""
        return self._parts.stopped or self._leaks.over

    @property
    def silence(self) -> int:
        """Lower estimate of the number of tokens so far that are not part of speech or of a
        call."""
        return self.thought + self._silent + self._pending // LETTERS

    def push(self, piece: Piece) -> Sequence[ReplyPart | StreamedCall]:
        """Add `piece` and return the parts and calls that are certain now."""
        match piece:
            case Text(text):
                return self._said(self._leaks.push(text))
            case Thought(text):
                self.thought += _tokens(text)
                self._silent += not text
            case StreamedCall():
                return [piece]
            case End():
                self.cut, self.filtered = piece.cut, piece.filtered
            case PromptUsage(thought=thought):
                self.thought = max(self.thought, thought)
            case _:
                pass
        return []

    def finish(self) -> Sequence[ReplyPart | StreamedCall]:
        """Return the remaining parts and calls.

        If the reply was taken for a thought from its beginning, but is complete and contains no end
        of a thought, it was no thought. Then return the parts of its whole text instead.
        """
        left = self._said(self._leaks.finish())
        if not self._parts.stopped:
            left += self._noted(self._parts.finish())
        if self._supposed is None or self.cut or self.filtered:
            return left
        plain = Parts(stop=self._stop)
        return [*plain.push("".join(self._supposed)), *plain.finish()]

    def _said(self, text: str) -> list[ReplyPart]:
        if not text:
            return []
        self._pending += len(text)
        if self._supposed is not None:
            self._supposed.append(text)
        return self._noted(self._parts.push(text))

    def _noted(self, parts: list[ReplyPart]) -> list[ReplyPart]:
        for part in parts:
            self._pending -= len(part.text)
            if part.spoken:
                self._spoke = self._spoke or not part.text.isspace()
            elif not part.calls:
                self._silenced(part.text)
        return parts

    def _silenced(self, text: str) -> None:
        """Count the tokens of a silent text: of a thought, a piece of a thought, or a mark."""
        if text.startswith(tuple(THOUGHTS)):
            self._within = True
        elif text in _ENDS and not self._within and self._spoke:
            self.lone = True
        if text not in MARKS:
            self.thought += _tokens(text)
        if text.endswith(tuple(_ENDS)):
            self._within = False
            self._supposed = None


def _tokens(text: str) -> int:
    """Return a lower estimate of the number of tokens in a text."""
    return max(len(text.split()), len(text) // LETTERS)


class RemoteLlm(MessageLlm):
    """A model on a server: a `voiceloop.engines.Llm`. It holds many conversations."""

    def __init__(self, server: ChatServer, config: LlmConfig) -> None:
        super().__init__(config)
        self.metered = server.where.metered
        self._server = server

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> RemoteConversation:
        """Begin a conversation. `system` and `seed`, if given, replace the configured ones."""
        if seed is None:
            own = self.config.seed
            seed = SystemRandom().getrandbits(31) if own == "auto" else own
        system = self.system if system is None else system
        return RemoteConversation(self._server, self.config, system, seed)

    def warm(self) -> None:
        """Request a reply of one token. Then the server loads the model, and this engine learns
        which parts of a request the server refuses, and whether the server tells when a turn is
        over. Raises RequestError."""
        conversation = self.conversation()
        conversation.warm()
        if self._server.tells_ends:
            self.calibrations.clear()  # they are found in idle time


def openai(config: LlmConfig) -> RemoteLlm:
    """Return the engine that `config` describes.

    Raises ConfigError for settings that exclude each other or are missing, and the errors of
    `ChatServer` and its `look_up`.
    """
    if not config.base_url:
        raise ConfigError("llm.engine is openai, and llm.base_url is not set", USUAL)
    if config.draft != LlmConfig().draft:
        raise ConfigError(
            f"llm.draft is {config.draft}, and the model is elsewhere",
            "a draft is the server's own to load: docs/engines.md says how",
        )
    server = ChatServer(address(config.base_url, os.environ), config.timeout_s)
    server.look_up()
    if config.target == LlmConfig().target:
        raise ConfigError(
            f"llm.target must name a model of {server.where.told}", server.client.instead_of("")
        )
    return RemoteLlm(server, config)
