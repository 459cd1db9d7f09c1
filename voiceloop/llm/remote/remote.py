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
from voiceloop.languages import installed
from voiceloop.llm.chat import ChatConversation, ChatReply
from voiceloop.llm.remote.chatserver import ChatServer, logger
from voiceloop.llm.remote.chatstream import FirstWords, Loading, PromptUsage
from voiceloop.llm.remote.errors import RequestError, cut_off
from voiceloop.llm.remote.incoming import Incoming
from voiceloop.llm.remote.readahead import ReadAhead
from voiceloop.llm.remote.servers import OPENAI, USUAL, address
from voiceloop.llm.remote.tool_calls import StreamedCall, accepted, called, renamed
from voiceloop.llm.text.calls import written
from voiceloop.llm.text.messages import SPOKEN, Message
from voiceloop.llm.text.parts import ReplyPart
from voiceloop.settings.config import LlmConfig
from voiceloop.types import FILTERED, LOADS, Calibration, Past, TokenBurst, Tool, ToolCall

MOST_STOPS = 4
"""Maximum number of stop strings that are sent to the server. All stop strings are also searched
for in the reply here, so those that are not sent work too."""


OPENING, NOTHING_YET = "Hello there.", "…"
"""What stands for the user's words: in the first request of all, and where the user has not spoken
yet."""


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
        if self.effort != self._effort:
            self._quirks.forgive({"reasoning_effort"})
            self._effort = self.effort
        if tools != self._tools:
            self._quirks.forgive({"tools", "tool_choice"} - self._server.quirks.left_out)
        super().rewrite(system, past, tools, required)

    def warm(self) -> None:
        """Let the server begin a reply of one token. Raises RequestError, but not if the model
        spends that token on thinking."""
        self._set_request(OPENING, 0)
        request = self._request(self._names(), most=1)
        try:
            self._server.begin(request)
        except RequestError as failure:
            if not failure.spent:
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
        self._count(self._ahead.taken())
        self._note(end_probability=found if text else None)

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
            forgetful = failure.too_long and self._before
            if len(reply.parts) > known or not (forgetful or (failure.spent and not roomy)):
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
        self._ahead.end()
        self._count(self._ahead.taken())
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
        maximum number of its tokens, which replaces the configured limit if given.

        Optional parameters with default values are left out, because some servers refuse parameters
        that they do not know.
        """
        config = self._config
        official = self._server.where.host == OPENAI
        limit = "max_completion_tokens" if official else "max_tokens"
        room = config.max_thought_tokens if self._thinks else 0
        most = config.max_new_tokens + room if most is None else most
        request: Message = {
            "model": config.target,
            "messages": [renamed(message, names) for message in self.messages()],
            "stream": True,
            "stream_options": {"include_usage": True},
            limit: most,
            "temperature": config.temperature,
        }
        if self.effort is not None:
            request["reasoning_effort"] = self.effort
        elif config.thinking == "off":
            request["reasoning_effort"] = "none"
            if not official:
                request["chat_template_kwargs"] = {"enable_thinking": False}
        usual = LlmConfig()
        for name in (
            *("top_p", "presence_penalty", "frequency_penalty"),
            *("top_k", "min_p", "repetition_penalty"),  # extensions that many servers share
        ):
            if (value := getattr(config, name)) != getattr(usual, name):
                request[name] = value
        if self.seed is not None:
            request["seed"] = self.seed
        if config.stop:
            request["stop"] = list(config.stop[:MOST_STOPS])
        if self._tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": names[tool.name],
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in self._tools
            ]
            if not self.parallel_calls:
                request["parallel_tool_calls"] = False
        if self._required:
            one = [
                {"type": "function", "function": {"name": names[name]}} for name in self._required
            ]
            request["tool_choice"] = one[0] if len(one) == 1 else "required"
        return request


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


class RemoteLlm:
    """A model on a server: a `voiceloop.engines.Llm`. It holds many conversations."""

    fingerprint = ""
    """Empty, so that no calibration is stored: the server may use the same name for another model
    later."""
    acts = False

    def __init__(self, server: ChatServer, config: LlmConfig) -> None:
        self.name = config.target
        self.metered = server.where.metered
        self.system = SPOKEN if config.system == "auto" else config.system
        self.calibrations: dict[str, Calibration | None] = dict.fromkeys(installed())
        self.borrowed = set[str]()
        self._server = server
        self._config = config

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> RemoteConversation:
        """Begin a conversation. `system` and `seed`, if given, replace the configured ones."""
        if seed is None:
            own = self._config.seed
            seed = SystemRandom().getrandbits(31) if own == "auto" else own
        system = self.system if system is None else system
        return RemoteConversation(self._server, self._config, system, seed)

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
