"""The responses that a client requests, and its changes of the items that they answer.

A response begins once the session has heard all audio that came before its request. It answers the
first of these that exists:

1. the `input` of the request;
2. the outputs of calls that the newest reply made;
3. the texts that the client had created before the request;
4. the newest turn of the user that has no answer;
5. the conversation as it is, with all outputs of earlier calls.

One response to the conversation is in progress at a time. Those out of it are made beside it
(`respond_aside`), except for those of voiceloop's own assistant: they wait until nothing else is in
progress, because rules may answer them, and what they claim is watched.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from voiceloop.errors import ProtocolError
from voiceloop.server.session import choices
from voiceloop.server.session.audio import SocketMicrophone
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.history import SILENCE, Unanswered, history, text_of, unanswered
from voiceloop.server.session.responses import (
    Out,
    Responses,
    SpokenResponse,
    respond_aside,
)
from voiceloop.session import Session
from voiceloop.wire.client_events import (
    ItemCreate,
    ItemDelete,
    ItemRetrieve,
    ItemTruncate,
    ResponseCreate,
)
from voiceloop.wire.items import FunctionCall, FunctionCallOutput, InputAudioPart, Message
from voiceloop.wire.responses import failed
from voiceloop.wire.server_events import ItemAdded, ItemDeleted, ServerEvent
from voiceloop.wire.settings import ResponseSettings, SessionSettings

logger = logging.getLogger(__name__)

MOST_WAITING = 16
"""Maximum number of requests that may wait until the audio before them is heard."""


@dataclass(slots=True)
class _Request:
    """A request of the client for a response."""

    settings: ResponseSettings
    event_id: str | None
    texts: tuple[str, ...]
    """Item ids of the texts that were unanswered when the request came."""
    spoken: SpokenResponse | None = None
    """The response, if the client was told of it before its turn begins."""

    @property
    def aside(self) -> bool:
        """Whether the response is no part of the conversation."""
        return self.settings.conversation == "none"


class ResponseRequests:
    """The requests of one connection for responses, and for changes of items."""

    def __init__(
        self,
        dialogue: ClientConversation,
        session: Session,
        microphone: SocketMicrophone,
        responses: Responses,
        out: Out,
        begin: Callable[[int], None],
        spent: Callable[[float, float], None],
    ) -> None:
        """`begin` begins the response to a turn, whose number it is called with. It calls `take`.
        `spent` is called with the numbers of tokens that were written and read for a response
        beside others."""
        self.unanswered = Unanswered()
        self._dialogue = dialogue
        self._session = session
        self._microphone = microphone
        self._responses = responses
        self._out = out
        self._begins = begin
        self._spent = spent
        self._requested: _Request | None = None
        """The request whose response is about to begin; None if there is no such request."""
        self._waiting = 0
        """Number of requests whose responses have not begun, or are being made beside others."""
        self._tasks: TaskGroup | None = None
        """The task group of the responses that are made beside others; None before `beside`."""
        self._next: list[_Request] = []
        """Requests that wait until a turn has ended."""

    @asynccontextmanager
    async def beside(self) -> AsyncGenerator[None]:
        """Make responses out of the conversation while the context lasts."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

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
        requested = choices.with_voice(requested, dialogue.engines.tts, "response")
        if self._waiting >= MOST_WAITING:
            raise ProtocolError(
                f"{MOST_WAITING} responses are waiting for the audio before them to be heard",
                "ask for one after the other",
                code="rate_limit_exceeded",
            )
        dialogue.typed = True
        self._waiting += 1
        request = _Request(requested, event.event_id, tuple(self.unanswered.items))
        self._microphone.then(partial(self._begin, request))

    def create_item(self, event: ItemCreate) -> None:
        """Add an item that the client creates. A user's text at the end, or the output of a call,
        waits for a response. Any other item changes the history that the language model reads.
        Raises ProtocolError if the item cannot be added."""
        item, ledger = event.item, self._dialogue.ledger
        if isinstance(item, Message) and any(
            isinstance(part, InputAudioPart) and part.transcript is None for part in item.content
        ):
            raise ProtocolError(
                "item.content has audio without its transcript",
                "send audio with input_audio_buffer.append",
                param="item.content",
            )
        created = ledger.create(event)
        self.send_items(created)
        added = next(one.item.id for one in created if isinstance(one, ItemAdded))
        match item:
            case Message(role="user") if added == ledger.last_id:
                self.unanswered.write(added, text_of(item))
                return
            case FunctionCallOutput() if self.unanswered.bring(item.call_id, item.output):
                return
            case Message(role="assistant"):  # the client restores an earlier conversation
                earlier = takewhile(lambda one: one.id != added, ledger.items)
                question = self.unanswered.take_texts([one.id for one in earlier])
                self._dialogue.skills.note(question, text_of(item), None)
            case _:
                pass
        self.rewrite()

    def retrieve_item(self, event: ItemRetrieve) -> None:
        """Send the client an item with its audio. Raises ProtocolError for an unknown id."""
        self._out.put(self._dialogue.ledger.retrieve(event.item_id))

    def delete_item(self, event: ItemDelete) -> None:
        """Delete an item. Raises ProtocolError if that is not possible."""
        self.send_items([self._dialogue.ledger.delete(event.item_id)])
        self.rewrite()

    def truncate_item(self, event: ItemTruncate) -> None:
        """Cut a message of the model to what was heard. If its response is in progress, cancel the
        response now, and cut the message when the response has ended. Raises ProtocolError if that
        is not possible."""
        if (turn := self._responses.turn_of(event.item_id)) is not None:
            self._session.cancel(turn)
            self._responses.cancel(turn, event)
            return
        heard = partial(self._responses.heard, event.item_id)
        self._out.put(self._dialogue.ledger.truncate(event, heard))
        self.rewrite()

    def send_items(self, events: Iterable[ServerEvent]) -> None:
        """Send events about items to the client. Forget the text of an item that is deleted: it
        needs no response any more."""
        for event in events:
            if isinstance(event, ItemDeleted):
                self.unanswered.forget(event.item_id)
            self._out.put(event)

    def take(self) -> SpokenResponse:
        """Return the response that begins now: the one that was requested, or else one with the
        settings of the session."""
        request, self._requested = self._requested, None
        if request is None:
            return self._responses.announce(self._dialogue.settings.response(), requested=False)
        return request.spoken or self._responses.announce(request.settings)

    def rewrite(self, settings: SessionSettings | ResponseSettings | None = None) -> None:
        """Replace the history that the language model reads, and its instructions and functions.

        All of these come from `settings`; None means the settings of the session. The history is
        the `input` of `settings`, if there is one, or else the conversation in the ledger.
        """
        settings = settings or self._dialogue.settings
        has_input = isinstance(settings, ResponseSettings) and settings.input is not None
        conversation, items = self._dialogue.conversation, self._dialogue.read(settings)
        seen = self._dialogue.seen(settings)
        system, past = history(seen.instructions, items, () if has_input else self.unanswered.items)

        def rewritten() -> None:
            conversation.effort, conversation.parallel_calls = seen.effort, seen.parallel_calls
            conversation.rewrite(system, past, seen.tools, seen.required)

        self._session.rewrite(rewritten)
        self.unanswered.moved_on()

    def go_on(self) -> None:
        """Queue again the requests that have waited for the end of a turn."""
        waiting, self._next = self._next, []
        for request in waiting:
            self._microphone.then(partial(self._begin, request))

    def _begin(self, request: _Request) -> None:
        """Begin a requested response, or let it wait. Refuse it if another is in progress, or if
        there is nothing to answer."""
        if request.spoken and request.spoken.response.over:  # cancelled while it waited
            self._waiting -= 1
            return
        try:
            self._resolve(request)
        except ProtocolError as error:
            self._waiting -= 1
            self._out.refuse(error, request.event_id)
            return
        if request.aside and not self._dialogue.options(request.settings).own_tools:
            assert self._tasks is not None, "the session runs"
            self._tasks.start_soon(self._respond_aside, self._responses.announce(request.settings))
            return
        if self._must_wait(request):
            if request.aside and request.spoken is None:
                request.spoken = self._responses.announce(request.settings)
            self._next.append(request)
            return
        self._waiting -= 1
        if self._responses.responding:
            self._out.refuse(_busy(), request.event_id)
            return
        dialogue, requested = self._dialogue, request.settings
        differs = requested.input is not None
        differs = differs or dialogue.seen(requested) != dialogue.seen(dialogue.settings)
        self._requested = request
        if differs:
            self.rewrite(requested)
        if (turn := self._answer(request)) is not None:
            self._begins(turn)
            return
        self._requested = None
        if differs:
            self.rewrite()
        refusal = self._refusal()
        if request.spoken:
            ending = failed(refusal.message, refusal.code)
            self._responses.withdraw(request.spoken.response.id, ending)
        else:
            self._out.refuse(refusal, request.event_id)

    async def _respond_aside(self, spoken: SpokenResponse) -> None:
        await respond_aside(self._dialogue, self._responses, self._out, spoken)
        self._waiting -= 1
        self._spent(spoken.tokens, spoken.read)

    def _resolve(self, request: _Request) -> None:
        """Put items in place of the references in the input of a request, since an item may be
        deleted while the request waits. Raises ProtocolError for unknown ids."""
        if request.settings.input is not None:
            items = tuple(self._dialogue.read(request.settings))
            request.settings = replace(request.settings, input=items)

    def _must_wait(self, request: _Request) -> bool:
        """Return whether a response cannot begin before a turn has ended.

        A response out of the conversation waits for every other. One to the conversation waits for
        one that is being cut off, or that is out of the conversation. Texts and outputs also wait
        for a turn that is yet to be answered: one reply to both would leave one of them out.
        """
        if self._responses.responding:
            return request.aside or not self._responses.busy
        given = request.texts or self.unanswered.brought
        return self._session.expected and bool(request.aside or given)

    def _answer(self, request: _Request) -> int | None:
        """Have the session begin the response. Return the number of the turn that it answers; None
        if the session cannot answer now."""
        requested = request.settings
        options = self._dialogue.options(requested)
        if requested.input is not None:
            said = unanswered(self._dialogue.read(requested))
            return self._session.write(said or SILENCE, options)
        items = self._dialogue.ledger.items
        self.unanswered.keep_calls({it.call_id for it in items if isinstance(it, FunctionCall)})
        results = self.unanswered.take_results()
        if results and self.unanswered.continues(results):
            return self._session.answer_calls(results, options)
        if results:
            self.rewrite(requested)  # no reply is left to go on, so the model reads of them
        if (text := self.unanswered.take_texts(request.texts)) and not text.isspace():
            logger.info("a message is answered", extra={"text": text})
            return self._session.write(text, options)
        answered = self._session.respond(options)
        if answered is not None:
            return answered
        free = not self._responses.responding and not self._session.expected
        if results or (free and not self.unanswered.missing()):
            # No turn is left to answer: reply to the conversation as it is, even an empty one.
            self.rewrite(requested)
            waiting = self.unanswered.items
            said = unanswered([item for item in items if item.id not in waiting])
            return self._session.write(said or SILENCE, options)
        return None

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
