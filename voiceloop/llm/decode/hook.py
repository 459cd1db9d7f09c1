"""A hook that lets other code than the speculator decide parts of a reply.

The package voiceloop-parallel has two such hooks: the best of several replies, and replies that are
begun ahead. It registers the function that chooses one as an entry point of the group `GROUP`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from importlib.metadata import entry_points

from voiceloop.engines import Steps
from voiceloop.errors import MissingPack
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.rules.stats import Step
from voiceloop.llm.text.output import Output
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.settings.config import LlmConfig

GROUP = "voiceloop.hook"


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
    ) -> Steps[int] | None:
        """Begin replies to a `turn` that the user has not finished. Return None to begin none.

        The first step calls `prompt`. It returns the prompt that ends with the user's words so far,
        and the number of its first ids that are equal to those of the conversation. `output` makes
        an object that turns tokens into text. The steps are those of `Conversation.ahead`.
        """


MakeHook = Callable[[Speculator, Decoder, Sampling, ChatTemplate, frozenset[int]], ReplyHook]
"""The type of a function that makes the hook of a conversation. It takes the conversation's
speculator, target, sampling and template, and the tokens that end a reply."""


def find_hook(config: LlmConfig) -> MakeHook | None:
    """Return the function that makes the hook for `config`; None if it asks for none.

    Raises MissingPack if the package for it is not installed, and the package's errors.
    """
    wishes = {"llm.best_of": config.best_of > 1, "llm.branches": config.branches > 0}
    asked = [wish for wish, is_asked in wishes.items() if is_asked]
    if not asked:
        return None
    for entry in entry_points(group=GROUP):
        return entry.load()(config)
    raise MissingPack(asked[0], "parallel")
