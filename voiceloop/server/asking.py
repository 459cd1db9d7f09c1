"""The responses that a client requests.

A response begins once the session has heard all audio that came before its request. It answers the
first of these that exists:

1. the `input` of the request;
2. the outputs of calls, or else the texts, that the client has created;
3. the newest turn of the user that has no answer;
4. the conversation as it is.
"""

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
"""Text that the language model reads in place of the user's words when there are none."""
MOST_WAITING = 16
"""Maximum number of requests that may wait until the audio before them is heard."""


class Asking:
    """The requests of one connection for responses."""

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
        """Number of the turn that the last requested response answers; None if there is no such
        response."""
        self._dialogue = dialogue
        self._session = session
        self._microphone = microphone
        self._speaking = speaking
        self._out = out
        self._requested: ResponseSettings | None = None
        """Settings of the requested response that is about to begin; None if there is no such
        response."""
        self._waiting = 0
        """Number of requests whose responses have not begun."""
        self._next: list[ResponseCreate] = []
        """Requests that wait until a turn, or a cancelled or interrupted response, has ended."""

    @property
    def waits(self) -> bool:
        """Whether a requested response has not begun."""
        return self._waiting > 0

    def ask(self, event: ResponseCreate) -> None:
        """Check a request, and queue it behind the audio that has not been heard yet. Raises
        ProtocolError if the request is invalid."""
        dialogue = self._dialogue
        dialogue.check_responds()
        requested = dialogue.settings.response(event.response)
        choices.check_size(requested, dialogue.config.server, "response")
        choices.check_choice(requested, dialogue.conversation, "response")
        dialogue.check_room(requested, "response")
        choices.with_voice(requested, dialogue.engines.tts, "response")
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
        """Return the settings of the response that begins now: those of its request, or those of
        the session if no client requested it."""
        requested, self._requested = self._requested, None
        return requested or self._dialogue.settings.response()

    def rewrite(self, settings: SessionSettings | ResponseSettings | None = None) -> None:
        """Replace the history that the language model reads, and its instructions and functions.

        All of these come from `settings`; None means the settings of the session. The history is
        the `input` of `settings`, if there is one, or else the conversation in the ledger.
        """
        settings = settings or self._dialogue.settings
        has_input = isinstance(settings, ResponseSettings) and settings.input is not None
        conversation, items = self._dialogue.conversation, self._dialogue.read(settings)
        instructions, tools, required = self._dialogue.seen(settings)
        system, past = history(instructions, items, () if has_input else self.unanswered.items)
        self._session.rewrite(lambda: conversation.rewrite(system, past, tools, required))
        self.unanswered.rewritten()

    def go_on(self) -> None:
        """Queue again the requests that have waited for the end of a response."""
        waiting, self._next = self._next, []
        for event in waiting:
            self._microphone.then(partial(self._begin, event))

    def _begin(self, event: ResponseCreate) -> None:
        """Begin a requested response. Refuse it if another is in progress, or if there is nothing
        to answer. If the other one is being cut off, wait for its end instead. A text also waits
        for a turn that is yet to be answered: one reply to both would leave one of them out."""
        begun = self._speaking.responding
        texts = self.unanswered.items and not begun and self._session.expected
        if self._speaking.ending or texts:
            self._next.append(event)
            return
        self._waiting -= 1
        if self._speaking.responding:
            self._out.refuse(_busy(), event.event_id)
            return
        settings = self._dialogue.settings
        requested = settings.response(event.response)
        try:
            requested = choices.with_voice(requested, self._dialogue.engines.tts, "response")
            self._dialogue.read(requested)
        except ProtocolError as error:
            self._out.refuse(error, event.event_id)
            return
        differs = requested.input is not None
        differs = differs or self._dialogue.seen(requested) != self._dialogue.seen(settings)
        self._requested = requested
        if differs:
            self.rewrite(requested)
        self.answering = self._answer(requested)
        if self.answering is None:
            self._requested = None
            if differs:
                self.rewrite()
            self._out.refuse(self._refusal(), event.event_id)

    def _answer(self, requested: ResponseSettings) -> int | None:
        """Have the session begin the response. Return the number of the turn that it answers; None
        if the session cannot answer now."""
        options = self._dialogue.options(requested)
        if requested.input is not None:
            said = unanswered(self._dialogue.read(requested))
            return self._session.write(said or SILENCE, options)
        if results := self.unanswered.take_results():
            return self._session.answer_calls(results, options)
        if (text := self.unanswered.take_texts()) and not text.isspace():
            logger.info("a message is answered", extra={"text": text})
            return self._session.write(text, options)
        answered = self._session.respond(options)
        if answered is None and self._session.idle and not self.unanswered.missing():
            # No turn is left to answer: reply to the conversation as it is, even an empty one.
            self.rewrite(requested)
            return self._session.write(unanswered(self._dialogue.ledger.items) or SILENCE, options)
        return answered

    def _refusal(self) -> ProtocolError:
        """Return why nothing is answered: an output is missing, or the session is busy."""
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
