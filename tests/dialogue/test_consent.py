"""Tools that need the user's consent: any turns and calls, held against a plain rule."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.consent import MOST_CHARS, question
from voiceloop.dialogue.conversationstate import Abilities, ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.state import DialogueSettings
from voiceloop.languages import language
from voiceloop.settings.config import TurnConfig
from voiceloop.tts.normalize import normalize
from voiceloop.types import ToolCall

pytestmark = pytest.mark.pure

YES = {
    "en": ("yes", "Yes, please.", "Sure, go ahead!", "uh yes do it", "of course", "YES YES"),
    "de": ("ja", "Ja, bitte.", "na klar", "Einverstanden, mach das!"),
    "es": ("sí", "Si, por favor.", "claro que sí", "Vale, hazlo."),
    "fr": ("ok",),
}
NOT_YES = {
    "en": ("no", "yes but not now", "", "please", "yes no", "yesterday", "sure?", "yes ❌"),
    "de": ("nein", "ja aber nicht jetzt", "bitte", "jaguar"),
    "es": ("no", "sí pero no", "gracias"),
    "fr": ("oui", "non"),
}


@pytest.mark.parametrize("code", YES)
def test_only_a_yes_and_nothing_else_agrees(code: str) -> None:
    spoken = language(code)
    assert [text for text in YES[code] if not spoken.agrees(text)] == []
    assert [text for text in NOT_YES[code] if spoken.agrees(text)] == []


class Talk:
    """A conversation that is written; the model calls what it is told to."""

    def __init__(self) -> None:
        policy, abilities = TurnConfig(), Abilities(prefills=False)
        settings = DialogueSettings(policy, language("en"))
        self.state, self.now = ConversationState(settings, abilities, {}), 0.0
        self.tell(inputs.Settled())

    def tell(self, report: inputs.Input) -> list[actions.Action]:
        self.now += 1
        return receive(self.state, report, self.now)

    def begin(self, text: str) -> int:
        """The user writes `text`. Returns the id of the turn."""
        begun = self.tell(inputs.Write(text))
        (turn,) = (action.turn for action in begun if isinstance(action, actions.Commit))
        return turn

    def call(self, turn: int, *calls: ToolCall) -> list[actions.CallTool]:
        found = self.tell(inputs.ToolsCalled(turn, calls))
        return [action for action in found if isinstance(action, actions.CallTool)]

    def end(self, report: inputs.Input) -> None:
        self.tell(report)
        self.tell(inputs.Settled())

    def turn(self, text: str, rounds: list[list[str]], ends: str) -> Iterator[tuple[str, str]]:
        """The user writes `text`, and the model calls `unlock` with these doors, but nothing more
        after a question. Yields each door, and what becomes of the call."""
        turn = self.begin(text)
        for doors in rounds:
            found = self.call(turn, *map(unlock, doors))
            yield from ((str(one.call.arguments["door"]), one.verdict) for one in found)
            if any(one.question for one in found):
                break
        self.end({"done": inputs.Replied, "failed": inputs.Failed}[ends](turn))


def unlock(door: str) -> ToolCall:
    return ToolCall(1, "c", "unlock", {"door": door}, confirm=True)


DOORS = st.lists(st.lists(st.sampled_from("ab"), max_size=2), max_size=3)
TURNS = st.lists(
    st.tuples(
        st.sampled_from(("yes", "yes please", "no", "what is it")),
        DOORS,
        st.sampled_from(("done", "failed")),
    ),
    max_size=6,
)


@given(TURNS)
def test_a_call_runs_once_in_the_turn_after_its_question_if_that_says_yes(
    turns: list[tuple[str, list[list[str]], str]],
) -> None:
    talk, asked = Talk(), ""
    for text, rounds, ends in turns:
        yes, answered, asking = text.startswith("yes"), asked, ""
        for door, verdict in talk.turn(text, rounds, ends):
            if door == answered:
                assert verdict == ("run" if yes else "declined")
                answered = "" if yes else answered
            else:
                assert verdict == ("later" if asking else "ask")
                asking = asking or door
        asked = asking if ends == "done" else ""


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.booleans() | st.text(max_size=3)))
def test_the_order_of_arguments_does_not_matter_and_their_values_do(
    given: dict[str, object],
) -> None:
    def verdict(later: dict[str, object]) -> str:
        talk, found = Talk(), list[actions.CallTool]()
        for text, arguments in (("Open it", given), ("Yes", later)):
            turn = talk.begin(text)
            found = talk.call(turn, ToolCall(1, "c", "unlock", arguments, confirm=True))
            talk.end(inputs.Replied(turn))
        return found[0].verdict

    assert verdict(dict(reversed(given.items()))) == "run"
    assert verdict({**given, "more": 1}) == "ask"
    assert not given or verdict({key: [value] for key, value in given.items()}) == "ask"


def test_a_yes_that_was_begun_before_the_question_was_over_is_no_answer() -> None:
    talk = Talk()
    turn = talk.begin("Open it")
    assert [one.verdict for one in talk.call(turn, unlock("a"))] == ["ask"]
    talk.tell(inputs.Write("Yes"))
    talk.tell(inputs.Replied(turn))
    (later,) = (
        action.turn for action in talk.tell(inputs.Settled()) if isinstance(action, actions.Commit)
    )
    assert [one.verdict for one in talk.call(later, unlock("a"))] == ["ask"]


def test_a_yes_after_the_model_has_gone_on_is_no_answer() -> None:
    """The results of a client's tool make the model say more, maybe another question."""
    talk = Talk()
    theirs = ToolCall(1, "d", "look", {}, client=True)
    assert list(talk.turn("Open it", [["a"]], "done")) == [("a", "ask")]
    for action in talk.tell(inputs.BringResults(((theirs, "nothing"),))):
        if isinstance(action, actions.Commit):
            talk.end(inputs.Replied(action.turn))
    turn = talk.begin("Yes")
    assert [one.verdict for one in talk.call(turn, unlock("a"), theirs)] == ["later"]
    assert [one.verdict for one in talk.call(turn, unlock("a"))] == ["ask"]


# ---- the question


VALUES = st.recursive(
    st.text(max_size=40) | st.integers() | st.booleans() | st.floats(allow_nan=False) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)
SIGNS = (
    *("```", "<!--", "*", "**", "_", "(", "[", "](", "<b", ">", "https://", "www.", "evil.com"),
    *("/x", "?a=1", "&amp;", "#", "|", "$x", "$", "~~", "900", "mallory", "\n", "\n\n", "- "),
    *(":", ".", " ", "!", "{", "`", "\\", "'", '"', "1.", "@", "-->", "\u202e", ":smile:"),
    *("://", "data:", "a1b2c3d4e5f60718"),
)
MARKUP = st.lists(st.sampled_from(SIGNS), max_size=12).map("".join)


@given(MARKUP | st.text(max_size=60))
def test_no_argument_hides_what_follows_it(text: str) -> None:
    for code in ("en", "de", "es", "fr"):
        asked = question("pay", {"note": text, "to": "mallory", "sum": "x77"}, language(code))
        said = normalize(asked, language(code)).text
        assert "mallory" in said and "sum" in said and "pay" in said
        assert "x77" in said or code != "fr"


@given(MARKUP, MARKUP)
@example("", "://")
@example("data:", "")
@example(":", ":")
@example("", "0a1b2c3d4e5f60718293a4b5c6d7e8f9")
@example("x" * 60, "")
def test_no_argument_hides_itself(before: str, behind: str) -> None:
    for code in ("en", "de", "es", "fr"):
        asked = question("pay", {"to": f"{before}mallory{behind}", "sum": 900}, language(code))
        said = normalize(asked, language(code)).text
        assert not asked or "mallory" in said.replace(" ", "")


@given(st.text(st.sampled_from("ab1 9.@/-"), max_size=300))
def test_no_number_and_no_address_is_left_out(text: str) -> None:
    asked = question("pay", {"to": text}, language("fr"))
    said = " ".join(re.findall(r"[^\W_]+", normalize(asked, language("fr")).text))
    telling = [word for word in re.findall(r"[^\W_]+", text) if any(map(str.isdigit, word))]
    assert not asked or [one for one in telling if one not in said] == []


@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=4), st.text(max_size=20))
def test_a_question_is_short_or_is_not_asked(given: dict[str, object], name: str) -> None:
    for code in ("en", "de", "es", "fr"):
        assert len(question(name, given, language(code))) <= MOST_CHARS
    assert question("f", {"x": "1 " * MOST_CHARS}, language("en")) == ""


def test_questions_are_asked_in_the_language_of_the_user() -> None:
    given = {"to": "mallory", "euros": 900, "now": True, "note": "one " * 30}
    asked = [question("pay_bill", given, language(code)) for code in ("en", "de", "es")]
    few = " ".join(["one"] * 24)
    assert asked == [
        f"Shall I do this? pay bill, to: mallory, euros: 900, now: yes, note: {few}, "
        "and 6 more words.",
        f"Soll ich das tun? pay bill, to: mallory, euros: 900, now: ja, note: {few}, "
        "und 6 weitere Wörter.",
        f"¿Hago esto? pay bill, to: mallory, euros: 900, now: sí, note: {few}, y 6 palabras más.",
    ]
