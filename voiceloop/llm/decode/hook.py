"""Where a conversation lets others than its speculator have a say in a reply.

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
    """Leaves every reply to the speculator; subclasses change what they have to.

    Their generators pause between passes of a model and may be closed at any pause.
    """

    def begin(self, turn: int) -> None:
        """Take note that the conversation has something to do for the user's `turn`."""

    def first(
        self, prompt: Prompt, limit: int, output: Callable[[], Output]
    ) -> Generator[None, None, Step] | None:
        """Decide the first tokens of a reply, at most `limit`; None lets the speculator do it.

        `output` makes what turns the reply's tokens into text.
        """

    def further(self, ids: Sequence[int], reply: Sequence[int], limit: int) -> Step | None:
        """Continue the reply by at most `limit` tokens; None lets the speculator do it.

        `ids` ends with the tokens that were decided last, `reply` has all of the reply.
        """

    def ahead(
        self, turn: int, prompt: Callable[[], tuple[Prompt, int]], output: Callable[[], Output]
    ) -> Steps[int | Begun] | None:
        """Begin replies to a `turn` of which the user has said only the beginning; None: nothing is
        begun ahead.

        The first step calls `prompt` for the ids up to what they have said, and the number of them
        that are the conversation's own. The steps are those of `Conversation.ahead`.
        """
