"""A hook that lets other code than the speculator decide parts of a reply.

`llm/parallel` has two such hooks: the best of several replies, and replies that are begun ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from voiceloop.engines import Steps
from voiceloop.llm.decode.speculate import Prompt
from voiceloop.llm.rules.stats import Step
from voiceloop.llm.text.output import Output
from voiceloop.types import Begun


class ReplyHook:
    """A hook that leaves every reply to the speculator. Subclasses override the methods that they
    need.

    The generators that the methods return pause between passes of a model, and may be closed at any
    pause.
    """

    def begin(self, turn: int) -> None:
        """Take note that work for the user's `turn` begins. This may be called several times for
        one turn."""

    def first(
        self, prompt: Prompt, limit: int, output: Callable[[], Output]
    ) -> Generator[None, None, Step] | None:
        """Decide the first tokens of a reply to `prompt`, at most `limit`. Return None to let the
        speculator decide them.

        `output` makes an object that turns the reply's tokens into text.
        """

    def further(self, ids: Sequence[int], reply: Sequence[int], limit: int) -> Step | None:
        """Continue the reply by at most `limit` tokens. Return None to let the speculator continue
        it.

        `ids` is the whole sequence, `reply` is all of the reply. Both end with the newest tokens.
        """

    def ahead(
        self, turn: int, prompt: Callable[[], tuple[Prompt, int]], output: Callable[[], Output]
    ) -> Steps[int | Begun] | None:
        """Begin replies to a `turn` that the user has not finished. Return None to begin none.

        The first step calls `prompt`. It returns the prompt that ends with the user's words so far,
        and the number of its first ids that are equal to those of the conversation. `output` makes
        an object that turns tokens into text. The steps are those of `Conversation.ahead`.
        """
