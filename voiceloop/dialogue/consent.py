"""Decides whether a tool may run that needs the user's consent, and words the question.

The first call of such a tool only asks the user, in words that rules find (`question`). The same
call, with the same arguments, may run in the user's next turn, once, if that turn begins after the
question was said to its end and says nothing but yes. So no word of the model, and nothing that a
tool has returned, can replace the user's yes, or the question to which it was the answer.

A model writes the name and the arguments of a call, and it may have been steered. So the question
is plain: nothing in it can hide a part of it from a listener, as markup or a link would.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping

from voiceloop.dialogue.actions import Verdict
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.state import Turn
from voiceloop.languages import Language
from voiceloop.types import Outcome, ToolCall

WHOLE_WORDS = 24
"""Number of words of an argument after which only possible numbers and addresses are said."""
MOST_CHARS = 600
"""Maximum number of characters of a question. A longer one is not asked."""

_UNSAID = re.compile(r"\bhttps?://|[^\w\s.,:@/+%€$£'-]|_|\$(?!\d)|'(?!\w)|-(?!\w)", re.I)
_JOINT = re.compile(r"(?<=[^\W\d])/|/(?=[^\W\d])|(?<=\bwww)\.", re.I)
"""Pattern of a mark that is said as a word of its own. Within a link a voice would leave out what
follows it."""
_TELLING = re.compile(r"[\d@€$£%]|\w[.:]\w")
_NAMING = re.compile(r"(?<!\d):|:(?!\d)")
"""Pattern of a colon that is in no time or ratio. A voice takes `:smile:` and `data:` for names of
what nobody reads aloud."""
_LONG = re.compile(r"[\w+/-]{31}(?=[\w+/-])")
"""Pattern of the beginning of a longer word, which a voice would take for code, or shorten."""


def question(name: str, arguments: Mapping[str, object], language: Language) -> str:
    """Return the question whether the tool `name` may run with `arguments`. It has to be said
    alone. Return an empty text if it would be too long."""
    given = (f"{_said(key, language)}: {_said(one, language)}" for key, one in arguments.items())
    asked = language.asks.format(call=", ".join((_said(name, language), *given)))
    return asked if len(asked) <= MOST_CHARS else ""


def _said(value: object, language: Language) -> str:
    """Return a name or the value of an argument in plain words, and how many are left out."""
    if isinstance(value, bool):
        return language.truth[value]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    plain = _UNSAID.sub(" ", unicodedata.normalize("NFKC", text))
    words = _JOINT.sub(lambda mark: f" {mark[0]} ".replace(".", " "), plain).split()
    kept = words[:WHOLE_WORDS] + [word for word in words[WHOLE_WORDS:] if _TELLING.search(word)]
    left = len(words) - len(kept)
    said = _LONG.sub(r"\g<0> ", _NAMING.sub(" ", " ".join(kept)))
    return said + (f", {language.left_out.format(count=left)}" if left else "")


def take_consent(state: ConversationState, turn_id: int) -> None:
    """Take the words of a turn as the user's answer to the last question. Call this when the reply
    to the turn is committed. Once the model says something else, a yes is no answer any more."""
    turn = state.turn(turn_id)
    assert turn is not None, "it is being answered"
    if turn.announces:
        return
    if turn.asks:
        answered = state.asked if turn.id > state.asked_at else None
        agreed = turn.language.agrees(turn.text)
        state.agreed, state.declined = (answered, None) if agreed else (None, answered)
    state.asked = None


def note_end(state: ConversationState, turn_id: int, outcome: Outcome) -> None:
    """Note that a turn is over. If its reply asked the user, the question counts from now on, but
    only if it was said to its end."""
    if state.asking and state.asking[0] == turn_id:
        if outcome == "done":
            state.asked, state.asked_at = state.asking[1], state.begun
        state.asking = None


def judge_call(
    state: ConversationState, turn: Turn, call: ToolCall, *, ask: bool
) -> tuple[Verdict, str]:
    """Return whether a call may run now, and the question with which the reply to `turn` ends if
    the user has to agree first. Without `ask` the reply cannot end with a question."""
    if not call.confirm:
        return "run", ""
    meant = call.name, json.dumps(dict(call.arguments), sort_keys=True)
    if meant == state.agreed:
        state.agreed = None
        return "run", ""
    if meant == state.declined:
        return "declined", ""
    if state.asking or not ask:
        return "later", ""
    if not (words := question(call.name, call.arguments, turn.language)):
        return "too long", ""
    state.asking = turn.id, meant
    return "ask", words
