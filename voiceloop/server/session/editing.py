"""Carries out a client's changes of the items of its conversation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import takewhile

from voiceloop.errors import ProtocolError
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.history import text_of
from voiceloop.server.session.response_requests import ResponseRequests
from voiceloop.server.session.responses import Out, Responses
from voiceloop.session import Session
from voiceloop.wire.client_events import ItemCreate, ItemDelete, ItemRetrieve, ItemTruncate
from voiceloop.wire.items import FunctionCallOutput, InputAudioPart, Message
from voiceloop.wire.server_events import ServerEvent
from voiceloop.wire.session_events import ItemAdded, ItemDeleted


class Editing:
    """The changes that the client of one connection makes to the items of its conversation."""

    def __init__(
        self,
        dialogue: ClientConversation,
        session: Session,
        responses: Responses,
        requests: ResponseRequests,
        out: Out,
    ) -> None:
        self._dialogue = dialogue
        self._session = session
        self._responses = responses
        self._requests = requests
        self._out = out

    def edit(self, event: ItemCreate | ItemRetrieve | ItemDelete | ItemTruncate) -> None:
        """Retrieve, create, delete or truncate an item. Raises ProtocolError if that is not
        possible."""
        ledger = self._dialogue.ledger
        match event:
            case ItemCreate():
                self._create(event)
            case ItemRetrieve():
                self._out.put(ledger.retrieve(event.item_id))
            case ItemDelete():
                self.send([ledger.delete(event.item_id)])
                self._requests.rewrite()
            case ItemTruncate():
                self.truncate(event)

    def _create(self, event: ItemCreate) -> None:
        """Add an item that the client creates. A user's text at the end, or the output of a call,
        waits for a response. Any other item changes the history that the language model reads."""
        item, ledger, unanswered = event.item, self._dialogue.ledger, self._requests.unanswered
        spoken = isinstance(item, Message) and any(
            isinstance(part, InputAudioPart) and part.transcript is None for part in item.content
        )
        if spoken:
            raise ProtocolError(
                "item.content has audio without its transcript",
                "send audio with input_audio_buffer.append",
                param="item.content",
            )
        created = ledger.create(event)
        self.send(created)
        added = next(one.item.id for one in created if isinstance(one, ItemAdded))
        match item:
            case Message(role="user") if added == ledger.last_id:
                unanswered.write(added, text_of(item))
            case FunctionCallOutput():
                if not unanswered.bring(item.call_id, item.output):
                    self._requests.rewrite()
            case Message(role="assistant"):  # the client restores an earlier conversation
                earlier = takewhile(lambda one: one.id != added, ledger.items)
                question = unanswered.take_texts([one.id for one in earlier])
                self._dialogue.skills.note(question, text_of(item), None)
                self._requests.rewrite()
            case _:
                self._requests.rewrite()

    def truncate(self, event: ItemTruncate) -> None:
        """Cut a message of the model to what was heard. If its response is in progress, cancel the
        response now, and cut the message when the response has ended."""
        if (turn := self._responses.turn_of(event.item_id)) is not None:
            self._session.cancel(turn)
            self._responses.cancel(turn, event)
            return
        heard = partial(self._responses.heard, event.item_id)
        self._out.put(self._dialogue.ledger.truncate(event, heard))
        self._requests.rewrite()

    def send(self, events: Iterable[ServerEvent]) -> None:
        """Send events to the client. Forget the text of an item that is deleted: it needs no
        response any more."""
        for event in events:
            if isinstance(event, ItemDeleted):
                self._requests.unanswered.forget(event.item_id)
            self._out.put(event)
