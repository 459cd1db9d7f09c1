"""Tools that need the user's consent: any turns and calls, held against a plain rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.config import TurnConfig
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.conversationstate import Abilities, ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.state import DialogueSettings
from voiceloop.languages import language
from voiceloop.types import ToolCall

pytestmark = pytest.mark.pure

YES = {
    "en": (
        "yes",
        "Yes, please.",
        "Sure, go ahead!",
        "Okay",
        "uh yes do it",
        "of course",
        "YES YES",
    ),
    "de": ("ja", "Ja, bitte.", "na klar", "Einverstanden, mach das!"),
    "es": ("sí", "Si, por favor.", "claro que sí", "Vale, hazlo."),
    "fr": ("ok",),
}
NOT_YES = {
    "en": (
        "no",
        "yes but not now",
        "do not",
        "",
        "please",
        "yes no",
        "is it yes",
        "thanks",
        "yesterday",
    ),
    "de": ("nein", "ja aber nicht jetzt", "bitte", "jaguar"),
    "es": ("no", "sí pero no", "gracias"),
    "fr": ("oui", "non"),
}


@pytest.mark.parametrize("code", YES)
def test_only_a_yes_and_nothing_else_agrees(code: str) -> None:
    spoken = language(code)
    assert [text for text in YES[code] if not spoken.agrees(text)] == []
    assert [text for text in NOT_YES[code] if spoken.agrees(text)] == []


@given(st.text(max_size=200))
def test_any_text_either_agrees_or_does_not(text: str) -> None:
    for code in YES:
        assert language(code).agrees(f"{text} not sure") is False
        assert language(code).agrees(text) in (True, False)


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

    def turn(self, text: str, rounds: list[list[str]], ends: str) -> Iterator[tuple[str, bool]]:
        """The user writes `text`, and the model calls `unlock` with these doors. Yields each door,
        and whether the call may run."""
        begun = self.tell(inputs.Write(text))
        (turn,) = (action.turn for action in begun if isinstance(action, actions.Commit))
        for doors in rounds:
            calls = [ToolCall(1, "c", "unlock", {"door": door}, confirm=True) for door in doors]
            for action in self.tell(inputs.ToolsCalled(turn, calls)):
                assert isinstance(action, actions.CallTool)
                yield str(action.call.arguments["door"]), action.agreed
        self.tell({"done": inputs.Replied, "failed": inputs.Failed}[ends](turn))
        self.tell(inputs.Settled())


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
def test_a_call_runs_once_in_the_turn_after_it_was_asked_about_if_that_says_yes(
    turns: list[tuple[str, list[list[str]], str]],
) -> None:
    talk, asked = Talk(), set[str]()
    for text, rounds, ends in turns:
        agreed = set(asked) if text.startswith("yes") else set[str]()
        asked = set()
        for door, runs in talk.turn(text, rounds, ends):
            assert runs == (door in agreed)
            agreed.discard(door)
            asked |= set() if runs else {door}


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.booleans() | st.text(max_size=3)))
def test_the_order_of_arguments_does_not_matter_and_their_values_do(
    given: dict[str, object],
) -> None:
    def agreed(later: dict[str, object]) -> bool:
        talk = Talk()
        for text, arguments in (("Open it", given), ("Yes", later)):
            begun = talk.tell(inputs.Write(text))
            (turn,) = (action.turn for action in begun if isinstance(action, actions.Commit))
            call = ToolCall(1, "c", "unlock", arguments, confirm=True)
            (found,) = talk.tell(inputs.ToolsCalled(turn, [call]))
            talk.tell(inputs.Replied(turn))
            talk.tell(inputs.Settled())
        assert isinstance(found, actions.CallTool)
        return found.agreed

    assert agreed(dict(reversed(given.items())))
    assert not agreed({**given, "more": 1})
    assert not given or not agreed({key: [value] for key, value in given.items()})


def test_a_timer_that_rings_in_between_changes_nothing() -> None:
    talk = Talk()
    assert list(talk.turn("Open it", [["a"]], "done")) == [("a", False)]
    for action in talk.tell(inputs.Announce("It is over")):
        if isinstance(action, actions.Commit):
            talk.tell(inputs.Replied(action.turn))
            talk.tell(inputs.Settled())
    assert list(talk.turn("Yes", [["a"], ["a"]], "done")) == [("a", True), ("a", False)]
