"""What was heard of a reply is the beginning of its text, with its own blanks and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.languages import language
from voiceloop.server.session.history import history, text_of
from voiceloop.server.session.responses import ClauseStarts
from voiceloop.tts.clauses import cut
from voiceloop.wire.items import Message, OutputText

pytestmark = pytest.mark.pure

pieces = st.sampled_from(
    [
        "I have",
        "nothing",
        "to say.",
        "To that,",
        "yes",
        "and—no",
        "1,000",
        "Dr. Li",
        "好的。",
        "¿Sí?",
    ]
)
blanks = st.sampled_from([" ", "  ", "\n", "\n\n", "\u00a0", " — ", "—", ""])
replies = st.lists(st.tuples(pieces, blanks), min_size=1, max_size=12).map(
    lambda pairs: "".join(text + blank for text, blank in pairs)
)


@given(replies, st.sampled_from(["en", "de", "es"]), st.data())
def test_what_was_heard_is_the_beginning_to_the_letter(
    reply: str, code: str, data: st.DataObject
) -> None:
    said, at = ClauseStarts(), 0
    clauses = cut(reply, language(code))
    for clause in clauses:
        said.add(at, clause)
        at += 100 * len(clause.text)
    samples = data.draw(st.integers(0, at))
    words = data.draw(st.integers(0, sum(len(clause.spans) for clause in clauses)))
    for heard in (said.until(samples, at), said.first(words)):
        assert reply.strip().startswith(heard)
    assert said.until(at, at) == reply.strip()
    assert said.first(at + len(clauses)) == reply.strip()


texts = st.text(st.sampled_from("ab \n\u00a0"), max_size=4)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("I have nothing to say to ", "that."), "I have nothing to say to that."),
        (("I have nothing to say to", "that."), "I have nothing to say to that."),
        (("Look:\n", "- one", "\n- two"), "Look:\n- one\n- two"),
    ],
)
def test_parts_of_a_message_are_joined_by_the_blanks_that_they_have(
    parts: tuple[str, ...], text: str
) -> None:
    message = Message("assistant", tuple(map(OutputText, parts)), "a")
    assert text_of(message) == text
    assert history("", [message], ())[1][0].replied == (text,)
