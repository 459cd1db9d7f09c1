"""Claims of deeds in replies: they are held back whole, and nothing else is, however the text
arrives."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.skills.claims import ClaimGuard
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.pure

CLAIMS = {
    "en": (
        "Sure, I turned on the lights in the living room.",
        "I opened the garage door.",
        "Sure! I'll call your mom.",
        "Okay, let's play some jazz.",
        "I\u2019ve sent him the message.",
        "Calling Anna now.",
        "Setting a timer for ten minutes.",
        "The kitchen lights are now off.",
        "Your alarm is set for 7:00 AM.",
        "The timer has been paused.",
        "I'm going to remind you tomorrow.",
        "I've added milk to your shopping list.",
        "Let me check the weather for you.",
        "Yes, I can see you.",
        "Sure, I can turn the lights on.",
        "I can call your mom.",
        "Okay, I turned on the lights",
        "I've\xa0set *an alarm.* Good night!",
        "I've added milk, eggs (six), and bread to your list.",
        "I have successfully set an alarm.",
        "I went ahead and turned off the lights.",
        "The lights are being turned on.",
        "I'll be setting an alarm.",
        "The timer's set.",
        "Message sent.",
        "Your table is booked.",
        "Added milk to your list.",
    ),
    "de": (
        "Klar, ich schalte das Licht ein.",
        "Ich habe das Garagentor geöffnet.",
        "Ich rufe deine Mutter an.",
        "Dein Wecker ist auf sieben Uhr gestellt.",
        "Ich erinnere dich morgen daran.",
        "Ich habe einen Tisch für zwei reserviert.",
        "Klar, ich kann das Licht einschalten.",
        "Okay, das Licht ist jetzt aus.",
        "Timer gestellt.",
        "Der Timer läuft.",
        "Die Nachricht wurde gesendet.",
        "Ich sehe dich gut.",
    ),
    "es": (
        "Claro, he encendido la luz del salón.",
        "Voy a llamar a tu madre.",
        "Tu alarma está puesta para las siete.",
        "Te recordaré mañana que saques la basura.",
        "He añadido leche a tu lista.",
        "Claro, puedo encender las luces.",
        "Mensaje enviado.",
        "Alarma puesta.",
    ),
}
HONEST = {
    "en": (
        "Sure, I'd be happy to help you with that. What would you like to know?",
        "You can turn on the lights with the switch beside the door.",
        "I can't call anybody. I only talk.",
        "An alarm clock was first patented in 1847 by a Frenchman.",
        "Let's play a game! I'll start with an easy question.",
        "I see your point. I'll explain it once more.",
        "If I were you, I would set an alarm and go to bed early.",
        'In German, "I turned off the lights" is "Ich habe das Licht ausgemacht".',
        "You could write: \"I've called your mom. I'll remind you tomorrow.\" That is short.",
        "The first email was sent in 1971.",
        "You can't set a timer on your oven by talking to me.",
        "Setting an alarm can make you sleep lightly before it rings.",
        "Turning off the lights at night saves money.",
        "Calling your mom is a kind thing to do!",
        "I can lower the volume, and I can play chess with you.",
        "I can see you are sad, and I'll remind you of how strong you are.",
        "Let me start the fantasy story.",
        "Should I set a timer? When I set one, it rings once.",
        "Let me share a story. I'll share the recipe with you, too.",
        "Let me remind you: I'll remind you that I'm only a program.",
        "The phone was on the table, and the camera is on the left.",
        "I'll order it by size. Let me add that to the list of reasons.",
        "Playing music helps you sleep.",
        "I can turn the radio and its volume down.",
    ),
    "de": (
        "Ich kann das Licht nicht einschalten, denn ich rede nur.",
        "Du kannst den Wecker in den Einstellungen deines Handys stellen.",
        "Gern! Der Fernseher wurde in den zwanziger Jahren erfunden.",
        "Ja, ich kann dich gut hören. Ich kann dich nicht sehen.",
        "Das Fenster ist aus Glas, und das Licht ist an der Decke.",
        "Ich stelle dir eine Frage zum Licht. Ich mache mir Sorgen um die Heizung.",
        "Ich werde dich Max nennen. Ich bestelle nichts und buche keine Reise.",
        "Die Temperatur wird auf 5 Grad fallen.",
    ),
    "es": (
        "No puedo encender la luz. Solo puedo hablar.",
        "Puedes poner una alarma en tu teléfono.",
        "Puedo pedir perdón. Nunca he llamado. No te he enviado nada. No te veo.",
        "Bajo la puerta hay un gato.",
        "Te recuerdo que soy un programa.",
    ),
}
VOICES = st.sampled_from(["fr", "en", "de", "es"])
"""Languages of the voice, which may differ from the user's. There are no claims in French."""
SAID = [(code, text) for code, texts in CLAIMS.items() for text in texts]
WELL = [(code, text) for code, texts in HONEST.items() for text in texts]


def passed(guard: ClaimGuard, text: str, cuts: list[int]) -> str:
    """What is heard of `text`, which arrives in pieces, until a claim is found."""
    ends = sorted({0, len(text), *(cut % len(text) for cut in cuts)})
    heard = list[TokenBurst]()
    for begin, end in itertools.pairwise(ends):
        heard += guard.push(TokenBurst(1, (end,), text[begin:end]))
        if guard.claimed:
            break
    else:
        guard.finish()
        heard += [] if guard.claimed else guard.release()
    return "".join(burst.text for burst in heard)


@pytest.mark.parametrize(("code", "text"), SAID)
@given(cuts=st.lists(st.integers(0, 80), max_size=30), voice=VOICES)
def test_a_claim_is_held_back_before_any_of_it_is_heard(
    code: str, text: str, cuts: list[int], voice: str
) -> None:
    guard = ClaimGuard("Please do it", voice, code)
    before = "Hm. " if cuts else ""
    heard = passed(guard, before + text, [cut for cut in cuts if cut > len(before)])
    assert guard.claimed and before.startswith(heard)


@pytest.mark.parametrize(
    "text",
    [
        'As they say, "all is well". I turned on the lights.',
        '"I turned on the lights in the living room."',
        '"Sure. I turned on the lights."',
    ],
)
@given(cuts=st.lists(st.integers(0, 80), max_size=30))
def test_a_claim_beside_a_quotation_or_in_a_reply_that_is_quoted_whole_is_one(
    text: str, cuts: list[int]
) -> None:
    guard = ClaimGuard("Please do it", "en")
    heard = passed(guard, text, cuts)
    assert guard.claimed and "lights" not in heard


@pytest.mark.parametrize(("code", "text"), WELL)
@given(cuts=st.lists(st.integers(0, 80), max_size=30), voice=VOICES)
def test_what_claims_nothing_is_heard_whole(
    code: str, text: str, cuts: list[int], voice: str
) -> None:
    guard = ClaimGuard("Please do it", voice, code)
    assert passed(guard, text, cuts) == text and not guard.claimed


STORIES = {
    "en": ("Tell me a story", "Say it as a butler would: dinner is served."),
    "de": ("Erzähl eine Geschichte", "Sag das wie ein Butler: Die Tür ist offen."),
    "es": (
        "Cuéntame un cuento",
        "Dilo como un mayordomo: la puerta está abierta.",
        "Hazme un correo corto diciendo que ya he enviado la factura.",
    ),
}


@pytest.mark.parametrize(("code", "text"), SAID)
def test_a_reply_may_say_so_after_a_deed_and_in_a_story(code: str, text: str) -> None:
    done = ClaimGuard("Please do it", code)
    done.allow()
    stories = [ClaimGuard(asked, code) for asked in STORIES[code]]
    for guard in (done, *stories, ClaimGuard("Please do it", "fr")):
        assert passed(guard, text, [*range(len(text))]) == text
