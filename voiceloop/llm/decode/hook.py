"""The hook with which other code than the speculator can decide parts of a reply.

`llm/parallel` has two of them: the best of several replies, and replies that are begun ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from voiceloop.engines import Steps
from voiceloop.llm.decode.speculate import Prompt
from voiceloop.llm.rules.stats import Step
from voiceloop.llm.text.output import Output
from voiceloop.types import Begun


class ReplyHook:
    """Leaves every reply to the speculator; subclasses override the methods that they need.

    Their generators pause between passes of a model and may be closed at any pause.
    """

    def begin(self, turn: int) -> None:
        """Note that work for the user's `turn` begins. The turn may be the same as before."""

    def first(
        self, prompt: Prompt, limit: int, output: Callable[[], Output]
    ) -> Generator[None, None, Step] | None:
        """Decide the first tokens of a reply, at most `limit`; None lets the speculator do it.

        `output` makes an object that turns the reply's tokens into text.
        """

    def further(self, ids: Sequence[int], reply: Sequence[int], limit: int) -> Step | None:
        """Continue the reply by at most `limit` tokens; None lets the speculator do it.

        `ids` is the whole sequence, `reply` is all of the reply. Both end with the newest tokens.
        """

    def ahead(
        self, turn: int, prompt: Callable[[], tuple[Prompt, int]], output: Callable[[], Output]
    ) -> Steps[int | Begun] | None:
        """Begin replies to a `turn` that the user has only begun; None if nothing is begun ahead.

        The first step calls `prompt`, which returns the prompt up to the words so far, and how many
        of its first ids are those of the conversation. `output` makes an object that turns tokens
        into text. The steps are those of `Conversation.ahead`.
        """
