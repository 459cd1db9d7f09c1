"""Voices for people: what names tell, and that no name goes without a label."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.catalog.store import cards
from voiceloop.languages.voices import (
    KOKORO_LANGUAGES,
    VoiceInfo,
    described,
    piper_name,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("name", "spoken", "label", "language", "language_name"),
    [
        ("af_heart", "en-us", "Heart, American woman", "en-us", "English"),
        ("bm_george", "en-gb", "George, British man", "en-gb", "English"),
        ("ef_dora", "es", "Dora, Spanish woman", "es", "Spanish"),
        ("pm_alex", "pt-br", "Alex, Brazilian man", "pt-br", "Portuguese"),
        ("hf_beta", "hi", "Beta, Indian woman", "hi", "Hindi"),
        ("en_US-joe-medium", "en-us", "Joe, American man", "en-us", "English"),
        # By its name, whatever phonemes it was taught.
        ("en_GB-alba-medium", "en-gb-x-rp", "Alba, British woman", "en-gb", "English"),
        ("de_DE-thorsten-high", "de", "Thorsten (high), German man", "de-de", "German"),
        ("es_MX-ald-medium", "es-419", "Ald, Mexican", "es-mx", "Spanish"),
        ("ka_GE-natia-medium", "ka", "Natia", "ka-ge", "Georgian"),
        ("en_US-libritts_r-medium/p3922", "en", "Libritts R p3922, American", "en-us", "English"),
        ("en-us", "en-us", "American", "en-us", "English"),
        ("de", "de", "German", "de", "German"),
        ("lt", "lt", "Lithuanian", "lt", "Lithuanian"),
        ("Claribel Dervla", "en", "Claribel Dervla", "en", "English"),
        ("high", "", "high", "", ""),
    ],
)
def test_a_name_tells_who_speaks_and_what(
    name: str, spoken: str, label: str, language: str, language_name: str
) -> None:
    voice = described(name, spoken)
    assert voice == VoiceInfo(name, label, language)
    assert voice.language_name == language_name


@given(st.text(min_size=1), st.text())
def test_whatever_a_voice_is_called_it_has_a_label(name: str, language: str) -> None:
    voice = described(name, language)
    assert voice.name == name and voice.label


def test_of_the_voices_that_have_cards_all_is_known() -> None:
    known = [card for card in cards() if card.kind in ("piper", "kokoro")]
    assert {card.kind for card in known} == {"piper", "kokoro"}
    for card in known:
        if piper_name(card.name):
            assert described(card.name, "").label.endswith(("man", "woman"))
            names = [card.name]
        else:
            names = [file.name[7:-4] for file in card.files if file.name.startswith("voices/")]
            assert len(names) == 41 and {name[0] for name in names} == {*KOKORO_LANGUAGES}
        for name in names:
            voice = described(name, "")
            assert voice.label.split()[-1] in ("woman", "man")
            assert voice.language_name[0].isupper()
            assert voice.language.partition("-")[0] in card.languages
