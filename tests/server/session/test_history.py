"""What the language model sees of a conversation: all that was said and replied, in its order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.conversations.records import KeptCall, KeptTurn, past
from voiceloop.server.session.history import history, items_of, unanswered
from voiceloop.types import Past
from voiceloop.wire.items import (
    FunctionCall,
    FunctionCallOutput,
    InputAudioPart,
    InputText,
    Item,
    Message,
    OutputText,
)

pytestmark = pytest.mark.pure

words = st.text("abc", min_size=1, max_size=3)
roles = st.sampled_from(["system", "user", "spoken", "assistant", "result"])


def item(role: str, text: str, item_id: str) -> Item:
    match role:
        case "system":
            return Message("system", (InputText(text),), item_id)
        case "user":
            return Message("user", (InputText(text),), item_id)
        case "spoken":
            return Message("user", (InputAudioPart(transcript=text),), item_id)
        case "assistant":
            return Message("assistant", (OutputText(text),), item_id)
        case _:
            return FunctionCallOutput("call", text, item_id)


@given(st.lists(st.tuples(roles, words), max_size=12), st.sets(st.integers(0, 11)))
def test_nothing_said_is_lost_up_to_the_last_reply(
    said: list[tuple[str, str]], waiting: set[int]
) -> None:
    items = [item(role, text, str(at)) for at, (role, text) in enumerate(said)]
    system, exchanges = history("Be brief.", items, {str(at) for at in waiting})
    notes = [text for role, text in said if role == "system"]
    assert system == "\n".join(["Be brief.", *notes])
    replies = [at for at, (role, _) in enumerate(said) if role == "assistant"]
    spoken = [part for one in exchanges for part in one.replied]
    assert spoken == [said[at][1] for at in replies]
    users = [
        text
        for at, (role, text) in enumerate(said[: replies[-1] if replies else 0])
        if role in ("user", "spoken") and at not in waiting
    ]
    assert " ".join(one.said for one in exchanges if one.said) == " ".join(users)


def test_what_has_no_words_is_no_turn() -> None:
    silent = Message("user", (InputAudioPart(transcript=""),), "a")
    unheard = Message("assistant", (OutputText(""),), "b")
    assert history("", [silent, unheard], ()) == ("", [])


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ([("system", "a")], "a"),
        ([("assistant", "a"), ("system", "b"), ("system", "c")], "b c"),
        ([("system", "a"), ("user", "b")], "b"),
        ([("spoken", "a"), ("system", "b")], "a"),
        ([("user", ""), ("system", "b")], "b"),
        ([("system", "a"), ("assistant", "b")], ""),
    ],
)
def test_a_note_is_answered_where_the_user_has_said_nothing(
    said: list[tuple[str, str]], answered: str
) -> None:
    assert unanswered([item(role, text, "id") for role, text in said]) == answered


def kept(said: str, heard: str, results: list[str]) -> KeptTurn:
    calls = tuple(KeptCall("look", {"at": result}, result) for result in results)
    texts = dict.fromkeys(("replied", "heard", "kept"), heard)
    at = datetime(2026, 11, 28, tzinfo=UTC)
    return KeptTurn(number=1, at=at, said=said, calls=calls, outcome="done", **texts)


def without_ids(past: list[Past]) -> list[tuple[str, list[object]]]:
    return [
        (
            one.said,
            [
                part if isinstance(part, str) else (part[0].name, part[0].arguments, part[1])
                for part in one.replied
            ],
        )
        for one in past
    ]


@given(st.lists(st.builds(kept, words, st.just("") | words, st.lists(words, max_size=2))))
def test_of_kept_turns_the_model_reads_on_a_server_what_it_reads_elsewhere(
    turns: list[KeptTurn],
) -> None:
    numbers = iter(range(10_000))
    items = items_of(turns, lambda kind: f"{kind}_{next(numbers)}")
    assert without_ids(history("", items, ())[1]) == without_ids(past(turns))


@pytest.mark.parametrize("arguments", ["[" * 100_000, '{"a":' * 100_000, "no JSON", "[1]", ""])
def test_a_call_whose_arguments_are_no_object_counts_as_one_without(arguments: str) -> None:
    items = [FunctionCall("x", arguments, "c1", "i1"), FunctionCallOutput("c1", "ok", "i2")]
    _, turns = history("", [item("user", "Hello.", "u"), *items], ())
    calls = [part for one in turns for part in one.replied if not isinstance(part, str)]
    assert [dict(call.arguments) for call, _ in calls] == [{}]
