"""The user's texts and the outputs of calls that no response has answered yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from voiceloop.types import ToolCall


class Unanswered:
    """The unanswered texts and outputs of one connection."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        """Calls without an output yet, by the id that the client was sent."""
        self._results: list[tuple[ToolCall, str]] = []
        """Calls with their outputs, which no response has answered yet."""
        self._texts: dict[str, str] = {}
        """Texts of the user, by item id."""
        self._newest: int | None = None
        """Number of the turn whose reply can go on with the outputs of its calls; None if no reply
        can."""

    @property
    def items(self) -> Collection[str]:
        """Item ids of the texts."""
        return self._texts.keys()

    @property
    def brought(self) -> bool:
        """Whether outputs of calls have not been answered."""
        return bool(self._results)

    def call(self, call_id: str, call: ToolCall) -> None:
        """Add a call that was sent to the client."""
        self._calls[call_id], self._newest = call, call.turn

    def bring(self, call_id: str, output: str) -> bool:
        """Add the output of a call. Return False if there is no such call."""
        call = self._calls.pop(call_id, None)
        if call is not None:
            self._results.append((call, output))
        return call is not None

    def write(self, item_id: str, text: str) -> None:
        """Add a text of the user."""
        self._texts[item_id] = text

    def forget(self, item_id: str) -> None:
        """Remove the text of an item, if there is one."""
        self._texts.pop(item_id, None)

    def keep_calls(self, known: Collection[str]) -> None:
        """Forget the calls whose ids are not among `known`: no output of them can come any more."""
        kept = {call_id: call for call_id, call in self._calls.items() if call_id in known}
        if len(kept) < len(self._calls):
            self._calls = kept
            self.moved_on()

    def begin(self, turn: int) -> None:
        """Note that the response to a turn begins."""
        if turn != self._newest:
            self.moved_on()

    def moved_on(self) -> None:
        """Note that no reply is left that outputs of calls could continue: another turn has begun,
        the reply was cut, or the history was rewritten."""
        self._newest = None

    def continues(self, results: Iterable[tuple[ToolCall, str]]) -> bool:
        """Return whether the reply that made all these calls can go on with their outputs."""
        return {call.turn for call, _ in results} == {self._newest}

    def missing(self) -> list[str]:
        """Return the names of the called functions that still lack an output, although another call
        of the same turn has one."""
        turns = {call.turn for call, _ in self._results}
        return [call.name for call in self._calls.values() if call.turn in turns]

    def take_results(self) -> list[tuple[ToolCall, str]]:
        """Remove and return the calls with their outputs, of all turns in which no output is
        missing."""
        lacking = {call.turn for call in self._calls.values()}
        found, self._results = self._results, []
        for call, output in found:
            if call.turn in lacking:
                self._results.append((call, output))
        return [(call, output) for call, output in found if call.turn not in lacking]

    def take_texts(self, items: Iterable[str] | None = None) -> str:
        """Remove and return the user's texts, one per line: all of them, or those of `items`."""
        among = list(self._texts) if items is None else [one for one in items if one in self._texts]
        return "\n".join(self._texts.pop(one) for one in among)
