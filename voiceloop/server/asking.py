"""Responses that a client asks for: each begins when all audio that came before was heard, and
answers what the client has brought, or else what its user has said."""

from __future__ import annotations

import logging
from functools import partial

from voiceloop.errors import ProtocolError
from voiceloop.server import choices
from voiceloop.server.audio import SocketMicrophone
from voiceloop.server.dialogue import Dialogue
from voiceloop.server.history import history, unanswered
from voiceloop.server.speaking import Out, Speaking
from voiceloop.server.unanswered import Unanswered
from voiceloop.session import Session
from voiceloop.wire.client_events import ResponseCreate
from voiceloop.wire.settings import ResponseSettings, SessionSettings

logger = logging.getLogger(__name__)

SILENCE = "…"
"""What the language model reads where the user has said nothing."""
MOST_WAITING = 16
"""Responses that may be asked for ahead of the audio."""


class Asking:
    """Of one connection."""

    def __init__(
        self,
        dialogue: Dialogue,
        session: Session,
        microphone: SocketMicrophone,
        speaking: Speaking,
        out: Out,
    ) -> None:
        self.unanswered = Unanswered()
        self.answering: int | None = None
        """The last turn that the client has asked to be answered."""
        self._dialogue = dialogue
        self._session = session
        self._microphone = microphone
        self._speaking = speaking
        self._out = out
        self._asked: ResponseSettings | None = None
        """What the client asked of the response that is about to begin."""
        self._waiting = 0
        """Responses asked for before all audio that came earlier was heard."""
        self._next: list[ResponseCreate] = []
        """Those that are asked for while one ends of which the client wants no more."""

    def ask(self, event: ResponseCreate) -> None:
        """A response is asked for. Raises ProtocolError where it is none that can be given."""
        dialogue = self._dialogue
        dialogue.check_responds()
        asked = dialogue.settings.response(event.response)
        choices.check_size(asked, dialogue.config.server, "response")
        choices.check_choice(asked, dialogue.conversation, "response")
        dialogue.check_room(asked, "response")
        choices.with_voice(asked, dialogue.engines.tts, "response")
        if self._waiting >= MOST_WAITING:
            raise ProtocolError(
                f"{MOST_WAITING} responses are waiting for the audio before them to be heard",
                "ask for one after the other",
                code="rate_limit_exceeded",
            )
        dialogue.typed = True
        self._waiting += 1
        self._microphone.then(partial(self._begin, event))

    def take(self) -> ResponseSettings:
        """What holds for the response that begins now; what was asked of it holds for no other."""
        asked, self._asked = self._asked, None
        return asked or self._dialogue.settings.response()

    def rewrite(self, settings: SessionSettings | ResponseSettings | None = None) -> None:
        """Let the language model see the conversation as the ledger has it, or what a response is
        to be to instead."""
        settings = settings or self._dialogue.settings
        own = isinstance(settings, ResponseSettings) and settings.input is not None
        conversation, items = self._dialogue.conversation, self._dialogue.read(settings)
        instructions, tools, required = self._dialogue.seen(settings)
        system, past = history(instructions, items, () if own else self.unanswered.items)
        self._session.rewrite(lambda: conversation.rewrite(system, past, tools, required))
        self.unanswered.rewritten()

    def go_on(self) -> None:
        """A response has ended: the next ones may begin."""
        waiting, self._next = self._next, []
        for event in waiting:
            self._microphone.then(partial(self._begin, event))

    def _begin(self, event: ResponseCreate) -> None:
        """Begin a response, with what there is to respond to."""
        if self._speaking.ending:
            self._next.append(event)
            return
        self._waiting -= 1
        if self._speaking.responding:
            self._out.refuse(_busy(), event.event_id)
            return
        settings = self._dialogue.settings
        asked = settings.response(event.response)
        try:
            asked = choices.with_voice(asked, self._dialogue.engines.tts, "response")
            self._dialogue.read(asked)
        except ProtocolError as error:
            self._out.refuse(error, event.event_id)
            return
        differs = asked.input is not None
        differs = differs or self._dialogue.seen(asked) != self._dialogue.seen(settings)
        self._asked = asked
        if differs:
            self.rewrite(asked)
        self.answering = self._answer(asked)
        if self.answering is None:
            self._asked = None
            if differs:
                self.rewrite()
            self._out.refuse(self._refusal(), event.event_id)

    def _answer(self, asked: ResponseSettings) -> int | None:
        """Have it answered: the number of the turn that it answers, if there is one."""
        options = self._dialogue.options(asked)
        if asked.input is not None:
            said = unanswered(self._dialogue.read(asked))
            return self._session.write(said or SILENCE, options)
        if results := self.unanswered.take_results():
            return self._session.answer_calls(results, options)
        if (text := self.unanswered.take_texts()) and not text.isspace():
            logger.info("a message is answered", extra={"text": text})
            return self._session.write(text, options)
        answered = self._session.respond(options)
        if answered is None and self._session.idle and not self.unanswered.missing():
            # It is a reply to the conversation as it stands, whatever that is.
            self.rewrite(asked)
            return self._session.write(unanswered(self._dialogue.ledger.items) or SILENCE, options)
        return answered

    def _refusal(self) -> ProtocolError:
        missing = self.unanswered.missing()
        if not missing:
            return _busy()
        return ProtocolError(
            f"the output of {' and '.join(missing)} is missing",
            "create an item with the output of each call, then one response for all",
            code="nothing_to_respond_to",
        )


def _busy() -> ProtocolError:
    return ProtocolError(
        "a response is in progress",
        "send response.cancel first, or wait for response.done",
        code="conversation_already_has_active_response",
    )
