"""Who makes a sound while a reply plays: every rule, and that there is always a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.asr.transcript import normalise
from voiceloop.dialogue.floor import (
    DECIDE_MS,
    INTERRUPTION_RULES,
    WORDLESS_MS,
    Interjection,
    Verdict,
)
from voiceloop.languages import Language, language
from voiceloop.languages.en import ENGLISH

pytestmark = pytest.mark.pure

REPLY = ("It", "is", "half", "past", "four", "in", "Paris.")
polite = st.lists(st.sampled_from(sorted(ENGLISH.backchannels)), max_size=4)
meant = st.lists(st.sampled_from(["stop", "no", "wait", "Paris?", "what"]), min_size=1, max_size=4)
waits = st.floats(0, 2000)


def judge(words: Sequence[str], language: Language, **known: Any) -> Verdict:
    sound = Interjection(words=words, language=language, **known)
    return INTERRUPTION_RULES["words"].judge(sound)


def verdict(words: list[str], *, speaking: bool, waited_ms: float = 100.0) -> Verdict:
    return judge(words, ENGLISH, speaking=speaking, final=True, waited_ms=waited_ms, spoken=REPLY)


@given(polite, waits)
def test_a_cough_and_politeness_let_the_reply_go_on(words: list[str], waited_ms: float) -> None:
    said = [word.title() + "," for word in words]
    assert verdict(said, speaking=False, waited_ms=waited_ms) is Verdict.RESUME


@given(polite, st.sampled_from(sorted(ENGLISH.articles)), waits)
def test_a_cough_that_is_taken_for_an_article_lets_the_reply_go_on(
    words: list[str], article: str, waited_ms: float
) -> None:
    said = [*words, article.title()]
    assert verdict(said, speaking=False, waited_ms=waited_ms) is Verdict.RESUME
    goes_on = verdict([article], speaking=True, waited_ms=DECIDE_MS + waited_ms)
    assert goes_on is Verdict.INTERRUPT, "more words come"


@given(polite, meant, polite, waits)
def test_words_interrupt_once_they_are_all_there(
    before: list[str], words: list[str], after: list[str], waited_ms: float
) -> None:
    said = [*before, *words, *after]
    assert verdict(said, speaking=False, waited_ms=waited_ms) is Verdict.INTERRUPT


@pytest.mark.parametrize("final", [True, False])
def test_two_words_leave_no_doubt_and_one_might_become_another(final: bool) -> None:
    def speaking(*words: str) -> Verdict:
        return judge(words, ENGLISH, speaking=True, final=final, waited_ms=50, spoken=())

    assert speaking("no", "wait") is Verdict.INTERRUPT
    assert speaking("okay", "wait") is Verdict.WAIT
    assert speaking("no") is Verdict.WAIT


known = ENGLISH.backchannels | {normalise(word) for word in REPLY}
others = st.text(max_size=5).filter(
    lambda word: not (normalise(word) in known or ENGLISH.is_backchannel(normalise(word)))
)


@given(st.lists(others, max_size=5), st.booleans(), st.floats(0, 9000))
def test_a_voice_that_goes_on_interrupts_in_the_end(
    words: list[str], final: bool, waited_ms: float
) -> None:
    found = judge(words, ENGLISH, speaking=True, final=final, waited_ms=waited_ms, spoken=REPLY)
    said = any(map(normalise, words))
    assert found is Verdict.INTERRUPT or waited_ms < (DECIDE_MS if said else WORDLESS_MS)
    assert found is Verdict.WAIT or said or waited_ms >= WORDLESS_MS, "the words may come late"


@given(polite, meant, waits)
def test_unlikely_words_end_no_reply_while_the_voice_goes_on(
    before: list[str], words: list[str], waited_ms: float
) -> None:
    def found(*, speaking: bool) -> Verdict:
        return judge(
            [*before, *words],
            ENGLISH,
            speaking=speaking,
            final=True,
            waited_ms=waited_ms,
            spoken=(),
            likely=False,
        )

    assert found(speaking=True) is (Verdict.WAIT if waited_ms < WORDLESS_MS else Verdict.INTERRUPT)
    assert found(speaking=False) is Verdict.INTERRUPT


def test_silence_waits_for_the_words() -> None:
    found = judge([], ENGLISH, speaking=False, final=False, waited_ms=5000, spoken=())
    assert found is Verdict.WAIT


@given(st.integers(0, 5), st.integers(2, 7))
def test_the_replys_own_words_do_not_interrupt_it(start: int, count: int) -> None:
    echo = [word.lower() for word in REPLY[start : start + count]]
    expected = Verdict.RESUME if len(echo) > 1 else Verdict.INTERRUPT
    assert verdict(echo, speaking=False) is expected
    assert verdict([*echo, "stop"], speaking=False) is Verdict.INTERRUPT
    assert verdict(list(reversed(echo)), speaking=False) is Verdict.INTERRUPT


@pytest.mark.parametrize(
    ("code", "word"), [("de", "Genau."), ("de", "Das"), ("es", "¡Vale!"), ("es", "El")]
)
def test_each_language_has_its_own_politeness_and_coughs(code: str, word: str) -> None:
    def verdict(known: str) -> Verdict:
        return judge([word], language(known), speaking=False, final=True, waited_ms=200, spoken=())

    assert verdict(code) is Verdict.RESUME
    assert verdict("en") is verdict("xx") is Verdict.INTERRUPT


hums = st.one_of(
    st.text("mhn", min_size=2, max_size=8),
    st.sampled_from(["uh-huh", "Mm-hmm.", "MMMM", "Ahh.", "ooh", "haha", "Ha-ha-ha", "hehe!"]),
)


@given(hums, st.sampled_from(["en", "de", "es", "xx"]))
def test_hums_and_laughs_let_the_reply_go_on_in_every_language(hum: str, code: str) -> None:
    found = judge([hum], language(code), speaking=False, final=True, waited_ms=200, spoken=())
    assert found is Verdict.RESUME


@pytest.mark.parametrize(("code", "word"), [("en", "he"), ("de", "hohe"), ("de", "Ehe")])
def test_words_that_are_like_hums_interrupt(code: str, word: str) -> None:
    found = judge([word], language(code), speaking=False, final=True, waited_ms=200, spoken=())
    assert found is Verdict.INTERRUPT


@pytest.mark.parametrize("code", ["en", "de", "es", "xx"])
def test_what_is_polite_everywhere_is_so_in_every_language(code: str) -> None:
    said = ["Okay,", "mhm."]
    found = judge(said, language(code), speaking=False, final=True, waited_ms=200, spoken=())
    assert found is Verdict.RESUME
