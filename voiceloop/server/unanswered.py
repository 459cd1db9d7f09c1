"""What a client has brought that no response has been asked for yet: texts, results of calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from voiceloop.types import ToolCall


class Unanswered:
    """Of one connection."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        """Calls that the client has to answer, by the id that it was told."""
        self._results: list[tuple[ToolCall, str]] = []
        self._texts: dict[str, str] = {}
        """By the ids of their items."""
        self._stale = False
        """The reply that made the calls is gone: they are part of a history that was rewritten."""

    @property
    def items(self) -> Collection[str]:
        """The ids of the texts' items."""
        return self._texts.keys()

    def call(self, call_id: str, call: ToolCall) -> None:
        """The client is to answer a call."""
        self._calls[call_id], self._stale = call, False

    def bring(self, call_id: str, output: str) -> bool:
        """A call has returned; False where there is no such call."""
        call = self._calls.pop(call_id, None)
        if call is not None:
            self._results.append((call, output))
        return call is not None

    def write(self, item_id: str, text: str) -> None:
        """The user has written."""
        self._texts[item_id] = text

    def forget(self, item_id: str) -> None:
        """That text was never written."""
        self._texts.pop(item_id, None)

    def rewritten(self) -> None:
        """The language model sees the conversation anew: no reply is left that could go on."""
        self._stale = True

    def missing(self) -> list[str]:
        """Functions that were called beside one that has returned, and have not."""
        turn = self._results[-1][0].turn if self._results else None
        return [call.name for call in self._calls.values() if call.turn == turn]

    def take_results(self) -> list[tuple[ToolCall, str]]:
        """What the newest calls returned, once all of them have; the reply that made older ones is
        gone."""
        if self.missing():
            return []
        results, self._results = self._results, []
        if self._stale:
            return []
        return [(call, text) for call, text in results if call.turn == results[-1][0].turn]

    def take_texts(self, items: Iterable[str] | None = None) -> str:
        """What the user has written: all of it, or that of these items."""
        among = list(self._texts) if items is None else [one for one in items if one in self._texts]
        return "\n".join(self._texts.pop(one) for one in among)
