"""Language models that are shown a conversation as messages: the base of engines that need no more.

The history is kept here and goes whole with each request. Nothing is read ahead, and an attempt
that is begun anew asks anew. What counts as a token is a word, or what came of one at a time: the
model's own tokens are not known. This module does not know where the model computes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate

from voiceloop.config import LlmConfig
from voiceloop.engines import Steps
from voiceloop.languages import LANGUAGES
from voiceloop.llm.text.messages import CallWithResult, Exchange, Message
from voiceloop.llm.text.parts import Parts, ReplyPart
from voiceloop.llm.text.wording import BROKEN_OFF, SPOKEN
from voiceloop.types import Calibration, Past, TokenBurst, Tool, ToolCall, spaced

_WORDS = re.compile(r"\s*\S+|\s+")


@dataclass(slots=True)
class ChatReply:
    """The reply to the user's current turn, as far as it has come."""

    turn: int
    parts: list[str | CallWithResult]
    """Those of its exchange."""
    words: int = 0
    """Words that have left in bursts."""
    finished: bool = False
    limited: bool = False
    """It is finished because it has had as many tokens as it may."""
    cut: bool = False
    """The user did not hear it to its end."""
    _calls: int = 0

    def say(self, text: str) -> TokenBurst:
        """Add what the model said; the burst has words for ids."""
        words = _WORDS.findall(text)
        first, self.words = self.words, self.words + len(words)
        self.parts += words
        ends = tuple(accumulate(map(len, words)))
        return TokenBurst(self.turn, tuple(range(first, self.words)), text, ends=ends)

    def call(
        self, name: str, arguments: Mapping[str, object], problem: str = "", own_id: str = ""
    ) -> ToolCall:
        """Add a call of a tool; `own_id` is what the model calls it, if it does."""
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
        """Add a part of the model's text: what is said of it, and the calls that it holds."""
        if part.spoken:
            yield self.say(part.text)
        for call in part.calls:
            yield self.call(call.name, call.arguments, call.problem)


class ChatConversation(ABC):
    """A `voiceloop.engines.Conversation` whose history is messages; a subclass answers them."""

    seed: int | None = None
    tokens_read = 0

    def __init__(self, system: str) -> None:
        self._system = system
        self._tools: Sequence[Tool] = ()
        self._required: Collection[str] = ()
        self._before: list[Exchange] = []
        """The exchanges before the user's current turn."""
        self._now = Exchange("")
        self._turn: int | None = None
        self._unanswered = ""
        """The part of the current turn that earlier turns without a reply contributed."""
        self._reply: ChatReply | None = None

    @abstractmethod
    def answer(self, reply: ChatReply) -> Steps[TokenBurst | ToolCall]:
        """Have the model go on with `reply`, which takes what comes, until it is finished."""

    def messages(self) -> list[Message]:
        """All that the model is shown: the system prompt, what was said, replied and called."""
        system: list[Message] = [{"role": "system", "content": self._system}]
        exchanges = (*self._before, self._now)
        told = [message for exchange in exchanges for message in exchange.messages()]
        return [*system, *told] if self._system else told

    @property
    def exchanges(self) -> int:
        """Questions with their answers before the user's current turn."""
        return len(self._before)

    @property
    def limited(self) -> bool:
        """Whether the last reply ended because it had as many tokens as it may."""
        return self._reply is not None and self._reply.limited

    def end_of_turn_probability(self) -> float | None:
        """None: nobody knows."""
        return None

    def prefill(self, text: str, turn: int) -> Steps[None]:
        """Remember the text; nothing is read."""
        self._ask(text, turn)
        yield from ()

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer the user's whole turn `text`."""
        self._ask(text, turn)
        self._reply = ChatReply(turn, self._now.reply)
        yield from self.answer(self._reply)

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer anew: nothing of the reply that was begun is of use."""
        return self.reply(text, turn)

    def recite(self, text: str, turn: int, reply: str) -> Steps[TokenBurst]:
        """Answer with a `reply` that is known."""
        self._ask(text, turn)
        self._reply = ChatReply(turn, self._now.reply, finished=True)
        yield self._reply.say(reply)

    def ahead(self, text: str, turn: int) -> None:
        """None: nothing is begun ahead."""
        return None

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int
    ) -> Steps[TokenBurst | ToolCall]:
        """Continue the turn with what its tools returned; nothing comes if its reply is gone."""
        reply = self._reply
        if reply is None or reply.turn != turn or not reply.parts:
            return
        results = {call.call_id: text for call, text in returned}
        for part in reply.parts:
            if isinstance(part, CallWithResult):
                part.result = results.get(part.call.call_id, part.result)
        yield from self.answer(reply)

    def heard(self, tokens: int) -> str:
        """Cut the last reply after `tokens` ids of its bursts, in the order they came."""
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
        """Put another history in place; how much of it fits is for the model to say."""
        self._system, self._tools, self._required = system, tools, required
        self._before = [Exchange(one.said, _replied(one)) for one in past]
        self._now = Exchange("")
        self._turn, self._reply, self._unanswered = None, None, ""

    def calls(self, tools: Sequence[Tool]) -> bool:
        """False: the model calls a tool if it likes, and nothing can make it."""
        return False

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        """None: nobody knows how many tokens these are."""
        return None

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""
        return None

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


def _replied(past: Past) -> list[str | CallWithResult]:
    """A reply as the model is shown it: each call with an id of its own."""
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


class ChatLlm(ABC):
    """A `voiceloop.engines.Llm` that answers messages: a subclass needs no more than `reply`."""

    fingerprint = ""
    """Nothing is learnt of the model: it may be another one tomorrow."""
    metered = False

    def __init__(self, config: LlmConfig) -> None:
        self.name = config.target
        self.system = SPOKEN if config.system == "auto" else config.system
        self.calibrations: dict[str, Calibration | None] = dict.fromkeys(LANGUAGES)
        self.borrowed = set[str]()
        self.config = config

    @abstractmethod
    def reply(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Steps[str | ToolCall]:
        """Answer `messages`, as chat completions have them; the last is the user's or a tool's.

        Yields pieces of text, of any length, and calls of `tools`, whose turn and id are ignored;
        None for a step that gave nothing. Calls that are written into the text, in any of the ways
        of `voiceloop.llm.text.calls`, are found there, and thoughts are left out. It is closed
        once nobody wants more.
        """

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> ChatConversation:
        """Begin a conversation; a `system` stands in for the configured one if given."""
        return _Replied(self, self.system if system is None else system)


class _Replied(ChatConversation):
    """A conversation with a model that needs no more than `reply`."""

    def __init__(self, model: ChatLlm, system: str) -> None:
        super().__init__(system)
        self._model = model

    def answer(self, reply: ChatReply) -> Steps[TokenBurst | ToolCall]:
        """Take what the model yields, until it ends, a stop string comes or it has had enough."""
        reply.finished = False
        config = self._model.config
        parts, most = Parts(stop=config.stop), reply.words + config.max_new_tokens
        with closing(self._model.reply(self.messages(), self._tools)) as items:
            for item in items:
                if isinstance(item, ToolCall):
                    yield reply.call(item.name, item.arguments, item.problem)
                    continue
                yield None  # another turn may be more urgent
                for part in parts.push(item or ""):
                    yield from reply.take(part)
                reply.limited = reply.words >= most
                if parts.stopped or reply.limited:
                    break
            else:
                for part in parts.finish():
                    yield from reply.take(part)
        reply.finished = True
