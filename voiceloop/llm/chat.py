"""The base classes of language models that get the conversation as messages.

The history is kept here, and each request to the model contains all of it. Nothing is prefilled. A
reply that is begun again is a new request. The model's own tokens are unknown, so a token here is a
word with the space before it, or a part of a word if the model sends the word in parts. This module
does not know where the model computes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from voiceloop.engines import ConversationStanding, Steps
from voiceloop.languages import installed
from voiceloop.llm.text.messages import OKAY, SPOKEN, CallWithResult, Exchange, Message
from voiceloop.llm.text.parts import Parts, ReplyPart
from voiceloop.settings.config import LlmConfig
from voiceloop.types import Calibration, Past, TokenBurst, Tool, ToolCall, spaced

_WORDS = re.compile(r"\s*\S+|\s+")


@dataclass(slots=True)
class ChatReply:
    """The reply to the user's current turn, so far."""

    turn: int
    parts: list[str | CallWithResult]
    """The parts of the reply. The turn's `Exchange` holds the same list, except for an effect."""
    words: int = 0
    """The number of words that were sent in bursts."""
    finished: bool = False
    effect: bool = False
    """Whether the history holds what was done instead of `parts`."""
    _calls: int = 0

    def say(self, text: str) -> TokenBurst:
        """Add `text` that the model said; return it as a burst. The burst's ids are the numbers of
        the words in the reply."""
        words = _WORDS.findall(text)
        first, self.words = self.words, self.words + len(words)
        self.parts += words
        ends = tuple(accumulate(map(len, words)))
        return TokenBurst(self.turn, tuple(range(first, self.words)), text, ends=ends)

    def call(
        self, name: str, arguments: Mapping[str, object], problem: str = "", own_id: str = ""
    ) -> ToolCall:
        """Add a call of a tool. `own_id` is the model's own id for the call, if there is one."""
        self._calls += 1
        call_id = f"call_{self.turn}_{self._calls}"
        problem = problem or ("" if name else "it has no name")
        call = ToolCall(self.turn, call_id, name, arguments, (), problem)
        known = {part.id for part in self.parts if isinstance(part, CallWithResult)}
        self.parts.append(
            CallWithResult(call, call_id if not own_id or own_id in known else own_id)
        )
        return call

    def take(self, part: ReplyPart) -> Iterator[TokenBurst | ToolCall]:
        """Add a part of the model's text; yield its spoken text, then its calls."""
        if part.spoken:
            yield self.say(part.text)
        for call in part.calls:
            yield self.call(call.name, call.arguments, call.problem)


class ChatConversation(ABC):
    """A `voiceloop.engines.Conversation` whose history is a list of messages. Subclasses define
    `answer`, which requests the reply from a model."""

    seed: int | None = None
    effort: str | None = None
    parallel_calls = True

    def __init__(self, system: str) -> None:
        self._system = system
        self._tools: Sequence[Tool] = ()
        self._required: Collection[str] = ()
        self._before: list[Exchange] = []
        """The exchanges before the user's current turn."""
        self._now = Exchange("")
        self._turn: int | None = None
        self._unanswered = ""
        """The text of earlier turns whose replies were cut to nothing. The current turn continues
        it."""
        self._reply: ChatReply | None = None
        self.standing = ConversationStanding()

    @abstractmethod
    def answer(self, reply: ChatReply) -> Steps[TokenBurst | ToolCall]:
        """Request the rest of `reply` from the model. Add each piece to `reply` when it arrives,
        and yield it."""

    def messages(self) -> list[Message]:
        """Return the system prompt and all exchanges as messages."""
        system: list[Message] = [{"role": "system", "content": self._system}]
        exchanges = (*self._before, self._now)
        dialogue = [message for exchange in exchanges for message in exchange.messages()]
        return [*system, *dialogue] if self._system else dialogue

    def prefill(self, text: str, turn: int) -> Steps[None]:
        """Store `text` as the user's words in `turn`. Nothing is computed."""
        self._set_request(text, turn)
        yield from ()

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer the user's whole turn `text`."""
        self._set_request(text, turn)
        self._reply = ChatReply(turn, self._now.reply)
        yield from self.answer(self._reply)

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer again from the start: nothing of the old reply can be used."""
        return self.reply(text, turn)

    def recite(
        self, text: str, turn: int, reply: str, effect: ToolCall | None = None
    ) -> Steps[TokenBurst]:
        """Answer with `reply`, which was found without the model. For an `effect` the history gets
        its call, or `OKAY` if the model was told of no tools: many servers then refuse calls."""
        self._set_request(text, turn)
        if effect is None:
            self._reply = ChatReply(turn, self._now.reply, finished=True)
        else:
            self._reply = ChatReply(turn, [], finished=True, effect=True)
            call = CallWithResult(effect, effect.call_id, effect.result)
            self._now.reply.append(call if self._tools else OKAY)
        yield self._reply.say(reply)

    def catch_up(self) -> Steps[None]:
        """Do nothing: there are no caches here."""
        yield from ()

    def ahead(self, text: str, turn: int) -> None:
        """Return None: no replies are begun ahead."""
        return None

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int, say: str = ""
    ) -> Steps[TokenBurst | ToolCall]:
        """Continue the turn's reply with the results of its tools, by `say` if there is such a
        text. Yield nothing if the reply belongs to another turn or was cut to nothing."""
        reply = self._reply
        if reply is None or reply.turn != turn or not reply.parts:
            return
        results = {call.call_id: text for call, text in returned}
        for part in reply.parts:
            if isinstance(part, CallWithResult):
                part.result = results.get(part.call.call_id, part.result)
        if say:
            reply.finished = True
            yield reply.say(say)
        else:
            yield from self.answer(reply)

    def heard(self, tokens: int) -> str:
        """Cut the last reply after its first `tokens` words, and return the text that is kept. With
        0 nothing is kept, not even tool calls. A finished reply of at most `tokens` words stays
        whole."""
        reply = self._reply
        if reply is None:
            return ""
        words = [at for at, part in enumerate(reply.parts) if isinstance(part, str)]
        if tokens <= 0 or not words:
            reply.parts.clear()
        elif tokens < len(words) or not reply.finished:
            del reply.parts[words[:tokens][-1] + 1 :]
        return "".join(part for part in reply.parts if isinstance(part, str))

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        """Replace the system prompt, the history and the tools. No part of the history is left out
        here, even if it may be too long for the model."""
        self._system, self._tools, self._required = system, tools, required
        self._before = [Exchange(one.said, _replied(one)) for one in past]
        self._now = Exchange("")
        self._turn, self._reply, self._unanswered = None, None, ""
        self._note(limited=False)

    def calls(self, tools: Sequence[Tool]) -> bool:
        """Return False: the model cannot be made to call a tool."""
        return False

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        """Return None: how many tokens the model makes of `system` and `tools` is not known."""
        return None

    def close(self) -> None:
        """Do nothing: no memory is held here."""
        return None

    def _set_request(self, text: str, turn: int) -> None:
        """Store `text` as the user's words in `turn`.

        If the turn is new, the reply to the turn before it is looked at. If something of it is
        kept, the exchange becomes part of the history. If it was cut to nothing, the words of that
        turn are put before `text`. If it was never begun, they are dropped.
        """
        reply, self._reply = self._reply, None
        before, self._turn, said = self._turn, turn, self._now.said
        if turn != before:
            if reply is not None and (reply.parts or reply.effect):
                self._before.append(self._now)
                self._unanswered = ""
            elif reply is not None:
                self._unanswered = self._now.said
        self._now = Exchange(f"{self._unanswered} {text}".strip())
        known = turn == before and self._now.said == said
        self._note(limited=False, end_probability=self.standing.end_probability if known else None)

    def _note(self, **changes: Any) -> None:
        """Replace `standing` by the present state, with `changes`."""
        self.standing = replace(self.standing, exchanges=len(self._before), **changes)


def _replied(past: Past) -> list[str | CallWithResult]:
    """Return the parts of a past reply. Successive texts are joined into one part."""
    parts = list[str | CallWithResult]()
    for part in past.replied:
        if not isinstance(part, str):
            call, result = part
            parts.append(CallWithResult(call, call.call_id, result))
        elif parts and isinstance(parts[-1], str):
            parts[-1] = spaced((parts[-1], part))
        else:
            parts.append(part)
    return parts


class MessageLlm:
    """The attributes of a `voiceloop.engines.Llm` that gets the conversation as messages."""

    fingerprint = ""
    """Empty, so that no calibration is stored: the same name may stand for another model later."""
    metered = False
    acts = False

    def __init__(self, config: LlmConfig) -> None:
        self.name = config.target
        self.system = SPOKEN if config.system == "auto" else config.system
        self.calibrations: dict[str, Calibration | None] = dict.fromkeys(installed())
        self.borrowed = set[str]()
        self.config = config


class ChatLlm(MessageLlm, ABC):
    """A `voiceloop.engines.Llm` that answers messages. Subclasses define only `reply`."""

    acts = True

    @abstractmethod
    def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Steps[str | ToolCall]:
        """Answer `messages`, which have the form of OpenAI's chat completions. The last message is
        the user's or a tool's.

        Yield pieces of text of any length and calls of `tools`. Yield None for a step without a
        result. The turn and the id of a call are ignored. The text may contain thoughts and calls
        in any notation of `voiceloop.llm.text.calls`: the caller removes the thoughts and finds the
        calls. The caller also closes the generator.
        """

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> ChatConversation:
        """Begin a conversation. `system`, if given, replaces the configured system prompt. `seed`
        is ignored."""
        return _Replied(self, self.system if system is None else system)


class _Replied(ChatConversation):
    """A conversation with a `ChatLlm`."""

    def __init__(self, model: ChatLlm, system: str) -> None:
        super().__init__(system)
        self._model = model

    def answer(self, reply: ChatReply) -> Steps[TokenBurst | ToolCall]:
        """Add the model's text and calls to `reply`, until the model ends, a stop string comes or
        the limit is reached."""
        reply.finished = False
        config = self._model.config
        parts, most = Parts(stop=config.stop), reply.words + config.max_new_tokens
        with closing(self._model.reply(self.messages(), self._tools)) as items:
            for item in items:
                if isinstance(item, ToolCall):
                    yield reply.call(item.name, item.arguments, item.problem)
                    continue
                yield None  # lets a more urgent turn go first
                for part in parts.push(item or ""):
                    yield from reply.take(part)
                limited = reply.words >= most
                self._note(limited=limited)
                if parts.stopped or limited:
                    break
            else:
                for part in parts.finish():
                    yield from reply.take(part)
        reply.finished = True
