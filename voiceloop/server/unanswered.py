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
        self._stale = False
        """Whether the history was rewritten since the model called a function last. Then the reply
        that made the call is gone."""

    @property
    def items(self) -> Collection[str]:
        """Item ids of the texts."""
        return self._texts.keys()

    def call(self, call_id: str, call: ToolCall) -> None:
        """Add a call that was sent to the client."""
        self._calls[call_id], self._stale = call, False

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

    def rewritten(self) -> None:
        """Note that the history was rewritten. No reply is left that outputs of calls could
        continue."""
        self._stale = True

    def missing(self) -> list[str]:
        """Return the names of the called functions that still lack an output, although another call
        of the same turn has one."""
        turn = self._results[-1][0].turn if self._results else None
        return [call.name for call in self._calls.values() if call.turn == turn]

    def take_results(self) -> list[tuple[ToolCall, str]]:
        """Remove and return the calls of the newest turn with their outputs. While an output is
        missing, return no calls and remove nothing.

        Outputs are dropped if the reply that made the calls is gone: those of older turns, and all
        if the history was rewritten.
        """
        if self.missing():
            return []
        results, self._results = self._results, []
        if self._stale:
            return []
        return [(call, text) for call, text in results if call.turn == results[-1][0].turn]

    def take_texts(self, items: Iterable[str] | None = None) -> str:
        """Remove and return the user's texts, one per line: all of them, or those of `items`."""
        among = list(self._texts) if items is None else [one for one in items if one in self._texts]
        return "\n".join(self._texts.pop(one) for one in among)
