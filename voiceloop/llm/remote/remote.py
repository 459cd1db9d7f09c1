"""The language model elsewhere: conversations with any server of OpenAI's chat completions.

The history is ours and goes whole with each request. The server's cache of prompts makes that
cheap, so nothing is read ahead, and an attempt that is begun anew asks anew. What counts as a token
here is a word, or what came of one at a time: the model's own tokens are not known. This module
does not know how requests travel.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from random import SystemRandom

from voiceloop.config import LlmConfig
from voiceloop.engines import Steps
from voiceloop.errors import ConfigError
from voiceloop.languages import LANGUAGES
from voiceloop.llm.remote.address import OPENAI, USUAL, address
from voiceloop.llm.remote.chatserver import ChatServer
from voiceloop.llm.remote.chatstream import Read
from voiceloop.llm.remote.incoming import Incoming
from voiceloop.llm.remote.presence import logger
from voiceloop.llm.remote.toolcrumbs import Call
from voiceloop.llm.remote.troubles import Trouble, cut_off
from voiceloop.llm.text.calls import written
from voiceloop.llm.text.messages import Called, Exchange, Message
from voiceloop.llm.text.parts import Part
from voiceloop.llm.text.wording import BROKEN_OFF, SPOKEN
from voiceloop.types import Calibration, Past, TokenBurst, Tool, ToolCall, spaced

MOST_STOPS = 4
"""Stop strings that the protocol takes; further ones end a reply on this side."""
_WORDS = re.compile(r"\s*\S+|\s+")


@dataclass(slots=True)
class _Reply:
    """The reply to the user's current turn, as far as it has come."""

    turn: int
    parts: list[str | Called]
    """Those of its exchange."""
    words: int = 0
    """That have left in bursts."""
    calls: int = 0
    finished: bool = False
    limited: bool = False
    """It is finished because it has had as many tokens as it may."""
    cut: bool = False
    """The user did not hear it to its end."""


class RemoteConversation:
    """See `voiceloop.engines.Conversation`."""

    def __init__(self, server: ChatServer, config: LlmConfig, system: str, seed: int) -> None:
        self._server = server
        self._config = config
        self._system = system
        self._seed = seed
        self._tools: Sequence[Tool] = ()
        self._required: Collection[str] = ()
        self._before: list[Exchange] = []
        """The exchanges before the user's current turn."""
        self._now = Exchange("")
        self._turn: int | None = None
        self._unanswered = ""
        """The part of the current turn that earlier turns without a reply contributed."""
        self._reply: _Reply | None = None
        self._read = 0

    @property
    def exchanges(self) -> int:
        """See `Conversation.exchanges`."""
        return len(self._before)

    @property
    def limited(self) -> bool:
        """See `Conversation.limited`."""
        return self._reply is not None and self._reply.limited

    @property
    def tokens_read(self) -> int:
        """See `Conversation.tokens_read`: what the server has told of it."""
        return self._read

    @property
    def seed(self) -> int | None:
        """See `Conversation.seed`; how far the server keeps to it is its own affair."""
        return self._seed if self._config.temperature else None

    def end_of_turn_probability(self) -> float | None:
        """See `Conversation.end_of_turn_probability`: no server tells."""
        return None

    def prefill(self, text: str, turn: int) -> Steps[None]:
        """See `Conversation.prefill`: the text is remembered, and nothing is sent."""
        self._ask(text, turn)
        yield from ()

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """See `Conversation.reply`. Raises Trouble."""
        self._ask(text, turn)
        self._reply = _Reply(turn, self._now.reply)
        yield from self._answer(self._reply)

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """See `Conversation.revise`: another reply. Raises Trouble."""
        return self.reply(text, turn)

    def recite(self, text: str, turn: int, reply: str) -> Steps[TokenBurst]:
        """See `Conversation.recite`."""
        self._ask(text, turn)
        self._reply = _Reply(turn, self._now.reply, finished=True)
        for burst in _given([Part(reply, spoken=True)], self._reply):
            if isinstance(burst, TokenBurst):
                yield burst

    def ahead(self, text: str, turn: int) -> None:
        """See `Conversation.ahead`: nothing is, since it might have to be paid for."""

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int
    ) -> Steps[TokenBurst | ToolCall]:
        """See `Conversation.tool_results`. Nothing comes where the turn's reply is gone. Raises
        Trouble."""
        reply = self._reply
        if reply is None or reply.turn != turn or not reply.parts:
            return
        results = {call.call_id: text for call, text in returned}
        for part in reply.parts:
            if isinstance(part, Called):
                part.result = results.get(part.call.call_id, part.result)
        yield from self._answer(reply)

    def heard(self, tokens: int) -> str:
        """See `Conversation.heard`. Counts the ids of bursts, in the order they came."""
        reply = self._reply
        if reply is None:
            return ""
        words = [at for at, part in enumerate(reply.parts) if isinstance(part, str)]
        if tokens <= 0 or not words:
            reply.parts.clear()
        elif tokens < len(words) or not reply.finished:
            del reply.parts[words[:tokens][-1] + 1 :]
            reply.cut = True
        return "".join(part for part in reply.parts if isinstance(part, str))

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        """See `Conversation.rewrite`; how much of it fits, the server will say."""
        self._system, self._tools, self._required = system, tools, required
        self._before = [Exchange(one.said, _replied(one)) for one in past]
        self._now = Exchange("")
        self._turn, self._reply, self._unanswered = None, None, ""

    def calls(self, tools: Sequence[Tool]) -> bool:
        """See `Conversation.calls`: the server sees to it."""
        return True

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        """See `Conversation.opening`: the server will say."""
        return None

    def warm(self) -> None:
        """Have the server begin a reply, of one token. Raises Trouble."""
        self._ask("Hello there.", 0)
        try:
            self._server.begin(self._request(most=1))
        except Trouble as trouble:
            if not trouble.spent:
                raise

    def close(self) -> None:
        """See `Conversation.close`: there is nothing to give back."""

    def _ask(self, text: str, turn: int) -> None:
        """Go on with the user's `turn`, or close the exchange before it."""
        reply, self._reply = self._reply, None
        if turn != self._turn:
            self._turn = turn
            if reply is not None and reply.parts:
                if reply.cut:
                    reply.parts.append(BROKEN_OFF)
                self._before.append(self._now)
                self._unanswered = ""
            elif reply is not None:
                self._unanswered = self._now.said
        self._now = Exchange(f"{self._unanswered} {text}".strip())

    def _answer(self, reply: _Reply) -> Steps[TokenBurst | ToolCall]:
        """Ask for the reply, or the rest of it. Where the history does not fit, the older half of
        it is forgotten, as half is also what the next turns will need. Where the model turns out to
        have thought, and was cut off, it is asked again with tokens to think with."""
        reply.finished = False
        known, roomy = len(reply.parts), self._thinks
        try:
            yield from self._asked(reply)
        except Trouble as trouble:
            forgetful = trouble.too_long and self._before
            if len(reply.parts) > known or not (forgetful or (trouble.spent and not roomy)):
                raise
            if forgetful:
                del self._before[: (len(self._before) + 1) // 2]
            yield from self._asked(reply)

    @property
    def _thinks(self) -> bool:
        """A reply is given tokens to think with."""
        return self._config.thinking == "on" or self._server.manners.thinks

    def _asked(self, reply: _Reply) -> Steps[TokenBurst | ToolCall]:
        known = len(reply.parts)
        incoming = Incoming(self._config.stop, thinking=self._server.manners.opens_in_thought)
        most = reply.words + self._config.max_new_tokens
        with closing(self._server.ask(self._request())) as answer:
            while (pieces := answer.next()) is not None:
                yield None  # others get their turn, also while it only thinks
                for piece in pieces:
                    if isinstance(piece, Read):
                        self._read += piece.tokens
                    yield from _given(incoming.push(piece), reply)
                    self._note(incoming)
                    if incoming.over or reply.words >= most:
                        reply.finished = True  # whatever more the server may have to say
                        reply.limited = not incoming.over
                        return
                    if incoming.silence > self._config.max_thought_tokens:
                        raise cut_off(incoming.thought, spent=False)
        yield from _given(incoming.finish(), reply)
        if incoming.cut and len(reply.parts) == known:
            self._server.manners.thinks = True
            raise cut_off(incoming.thought, spent=True)
        reply.finished, reply.limited = True, incoming.cut

    def _note(self, incoming: Incoming) -> None:
        """Remember how the server's model thinks."""
        manners = self._server.manners
        manners.thinks = manners.thinks or incoming.thought > 0
        if incoming.lone and not manners.opens_in_thought:
            manners.opens_in_thought = True
            logger.warning(
                "%s does not mark where its model begins to think, so some of that was said; from "
                "now on replies are taken to begin with it",
                self._server.where.host,
            )

    def _request(self, most: int | None = None) -> Message:
        """The request for what comes next, of `most` tokens if that is given. What has a default in
        the protocol is set only to something else, as some servers refuse what they do not know."""
        config = self._config
        system: list[Message] = [{"role": "system", "content": self._system}]
        exchanges = (*self._before, self._now)
        official = self._server.where.host == OPENAI
        limit = "max_completion_tokens" if official else "max_tokens"
        room = config.max_thought_tokens if self._thinks else 0
        most = config.max_new_tokens + room if most is None else most
        request: Message = {
            "model": config.target,
            "messages": [
                *(system if self._system else []),
                *(message for one in exchanges for message in one.messages()),
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            limit: most,
            "temperature": config.temperature,
        }
        if config.thinking == "off":
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
        if config.temperature:
            request["seed"] = self._seed
        if config.stop:
            request["stop"] = list(config.stop[:MOST_STOPS])
        if self._tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in self._tools
            ]
        if self._required:
            one = [{"type": "function", "function": {"name": name}} for name in self._required]
            request["tool_choice"] = one[0] if len(one) == 1 else "required"
        return request


def _given(parts: Sequence[Part | Call], reply: _Reply) -> Steps[TokenBurst | ToolCall]:
    """What the model said, with words for ids, and the calls that it made or wrote into that."""
    for part in parts:
        if isinstance(part, Call):
            yield _called(reply, part)
            continue
        if part.spoken:
            words = _WORDS.findall(part.text)
            first, reply.words = reply.words, reply.words + len(words)
            reply.parts += words
            ends = tuple(accumulate(map(len, words)))
            yield TokenBurst(reply.turn, tuple(range(first, reply.words)), part.text, ends=ends)
        for call in part.calls:
            own = Call("", call.name, json.dumps(dict(call.arguments)))
            yield _called(reply, own, call.problem)


def _called(reply: _Reply, call: Call, problem: str = "") -> ToolCall:
    reply.calls += 1
    read = written(call.name, call.arguments)
    problem = problem or read.problem or ("" if call.name else "it has no name")
    call_id = f"call_{reply.turn}_{reply.calls}"
    called = ToolCall(reply.turn, call_id, call.name, read.arguments, (), problem)
    known = {part.id for part in reply.parts if isinstance(part, Called)}
    reply.parts.append(Called(called, call_id if not call.id or call.id in known else call.id))
    return called


class RemoteLlm:
    """See `voiceloop.engines.Llm`."""

    fingerprint = ""
    """Nothing is learnt of what may be another model tomorrow."""

    def __init__(self, server: ChatServer, config: LlmConfig) -> None:
        self.name = config.target
        self.metered = server.where.metered
        self.system = SPOKEN if config.system == "auto" else config.system
        self.calibrations: dict[str, Calibration | None] = dict.fromkeys(LANGUAGES)
        self.borrowed = set[str]()
        self._server = server
        self._config = config

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> RemoteConversation:
        """Begin a conversation; `system` and `seed` stand in for the configured ones if given."""
        if seed is None:
            own = self._config.seed
            seed = SystemRandom().getrandbits(31) if own == "auto" else own
        system = self.system if system is None else system
        return RemoteConversation(self._server, self._config, system, seed)

    def warm(self) -> None:
        """Have the model loaded, and find out what the server takes, for no more than the first
        token of a reply. Raises Trouble."""
        self.conversation().warm()


def openai(config: LlmConfig) -> RemoteLlm:
    """Build the engine that `config` describes.

    Raises ConfigError for settings that do not go together, and Trouble where there is no server.
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
            f"llm.target must name a model of {server.where.host}", server.instead_of("")
        )
    return RemoteLlm(server, config)


def _replied(past: Past) -> list[str | Called]:
    """A reply as servers are shown it: each call with an id of its own."""
    parts = list[str | Called]()
    for part in past.replied:
        if not isinstance(part, str):
            call, result = part
            parts.append(Called(call, call.call_id, result))
        elif parts and isinstance(parts[-1], str):
            parts[-1] = spaced((parts[-1], part))
        else:
            parts.append(part)
    return parts
