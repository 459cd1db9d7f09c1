"""The microphone: what reaches the server of it, and what the user is told where it fails."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.standin import RATE, Client, StandIn

pytestmark = pytest.mark.browser

NEVER = "navigator.mediaDevices.getUserMedia = () => new Promise(() => {})"


def refusing(name: str) -> str:
    """A browser whose microphone fails in this way."""
    return (
        "navigator.mediaDevices.getUserMedia = "
        f"() => Promise.reject(new DOMException('', '{name}'))"
    )


PITCH = 440


def unbroken(tone: np.ndarray, rate: int) -> np.ndarray:
    """The longest stretch in which nothing is missing: each sample follows from the two before."""
    follows = 2 * np.cos(2 * np.pi * PITCH / rate) * tone[1:-1] - tone[:-2]
    breaks = np.flatnonzero(np.abs(follows - tone[2:]) > 0.004)
    edges = np.concatenate([[0], breaks, [len(tone)]])
    longest = int(np.argmax(np.diff(edges)))
    return tone[edges[longest] : edges[longest + 1]]


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
def test_what_the_microphone_hears_arrives_at_24_khz_without_a_gap(
    visit: Open, server: StandIn, rate: int
) -> None:
    tone = 0.5 * np.sin(np.arange(rate) * 2 * np.pi * PITCH / rate)
    opened = visit(microphone=tone.astype("f4"), rate=rate)
    opened.talk()
    client = server.client()
    client.until(lambda: len(client.audio) >= 3 * RATE * 2, "no three seconds of sound")
    native, native_rate = opened.captured()
    arrived = np.frombuffer(bytes(client.audio), "<i2") / 32768
    assert set(client.frames) == {960}
    # A busy machine makes the browser's scripted microphone stumble; what it gave has to be whole.
    given, pcm = unbroken(native, native_rate), unbroken(arrived, RATE)
    assert len(pcm) / RATE >= min(len(given) / native_rate, len(arrived) / RATE) - 0.05
    spectrum = np.abs(np.fft.rfft(pcm * np.hanning(len(pcm))))
    assert abs(np.argmax(spectrum) * RATE / len(pcm) - PITCH) <= 2 * RATE / len(pcm)
    assert np.sqrt(np.mean(pcm**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.02)


def test_nothing_is_sent_before_the_user_starts_and_after_they_turn_it_off(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    client = server.client()
    client.wait("session.update")
    assert not client.audio
    opened.talk()
    client.until(lambda: client.frames, "no sound")
    opened.page.get_by_role("button", name="Turn off").click()
    opened.phase("Microphone off")
    client.send("error", error={"message": "are you there?"})
    opened.page.get_by_text("are you there?").first.wait_for()
    sent = len(client.frames)
    opened.page.get_by_label("Type instead").fill("yes")
    opened.page.keyboard.press("Enter")
    client.wait("response.create")
    assert len(client.frames) == sent


def test_muted_it_sends_silence(visit: Open, server: StandIn) -> None:
    opened = visit()
    opened.talk()
    client = server.client()
    client.until(lambda: client.frames, "no sound")
    opened.page.get_by_role("button", name="Mute").click()
    opened.phase("Muted")
    client.until(lambda: not any(client.audio[-9600:]), "no silence")
    opened.page.get_by_role("button", name="Mute").click()
    opened.phase("Listening")
    client.until(lambda: any(client.audio[-960:]), "nothing but silence")


ASKED = """
window.asked = [];
const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = (wanted) => {
  window.asked.push(wanted.audio.deviceId ?? '');
  return real(wanted);
};
"""


def resuming(client: Client) -> None:
    client.send("session.created", session={})
    client.send("voiceloop.session.resumed")
    client.send("voiceloop.session.token", token="token-2", expires_in_s=60)


def test_the_microphone_is_chosen_and_stays_chosen(visit: Open, server: StandIn) -> None:
    opened = visit(script=ASKED)
    page = opened.page
    opened.talk()
    server.greet = resuming
    page.get_by_role("button", name="Settings").click()
    choice = page.get_by_label("Microphone")
    expect(choice.locator("option")).not_to_have_count(1)
    label, value = choice.locator("option").nth(1).evaluate("one => [one.label, one.value]")
    assert label and value
    choice.select_option(value)
    page.get_by_role("button", name="Apply").click()
    opened.until(f"asked.length === 2 && asked[1] === '{value}'")
    opened.phase("Listening")
    page.reload()
    opened.talk()
    opened.until(f"asked.length === 1 && asked[0] === '{value}'")
    # One that is not there any more is told, and no reason not to talk.
    page.evaluate("localStorage.setItem('voiceloop.settings', '{\"microphone\": \"gone\"}')")
    page.reload()
    opened.talk()
    page.get_by_role("button", name="Settings").click()
    expect(choice.locator("option:checked")).to_have_text("The one you chose, which is not there")


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (NEVER, "The browser asks whether this page may use the microphone."),
        (refusing("NotReadableError"), "The microphone cannot be opened."),
        (refusing("NotAllowedError"), "This page may not use the microphone."),
        (refusing("Whatever"), "The microphone could not be started."),
        ("delete window.AudioWorkletNode", "This browser cannot record and play sound"),
    ],
)
def test_the_user_is_told_what_is_wrong_with_the_microphone(
    visit: Open, script: str, sentence: str
) -> None:
    page = visit(script=script).page
    page.get_by_role("button", name="Start talking").click()
    page.get_by_role("status").get_by_text(sentence).wait_for()


def test_the_user_who_refuses_is_asked_again(visit: Open) -> None:
    opened = visit(allowed=False)
    opened.page.get_by_role("button", name="Start talking").click()
    opened.page.get_by_text("This page may not use the microphone.").wait_for()
    opened.context.grant_permissions(["microphone"])
    opened.page.get_by_role("button", name="Ask again").click()
    opened.phase("Listening")


@pytest.mark.parametrize("device", [True, False])
def test_a_microphone_that_is_refused_is_told_apart_from_one_that_is_not_there(
    visit: Open, device: bool
) -> None:
    # Without a device Chromium reports that there is none, whatever it was told to refuse.
    opened = visit(device=device, allowed=False, flags=("--use-fake-ui-for-media-stream=deny",))
    opened.page.get_by_role("button", name="Start talking").click()
    opened.page.get_by_text("This page may not use the microphone.").wait_for()
    assert opened.page.get_by_text("No microphone was found.").count() == 0


def test_a_machine_without_a_microphone(visit: Open) -> None:
    opened = visit(device=False)
    opened.page.get_by_role("button", name="Start talking").click()
    opened.page.get_by_text("No microphone was found.").wait_for()
    opened.page.get_by_role("button", name="Look again").click()
    opened.page.get_by_text("No microphone was found.").wait_for()


def test_a_page_that_came_over_plain_http_says_why_it_is_deaf_and_takes_text(
    visit: Open, server: StandIn
) -> None:
    opened = visit(
        url=f"http://voice.test:{server.port}/",
        allowed=False,
        flags=("--host-resolver-rules=MAP voice.test 127.0.0.1",),
    )
    opened.page.get_by_role("button", name="Start talking").click()
    opened.page.get_by_text("Browsers give sound only to pages").wait_for()
    opened.page.get_by_label("Type instead").fill("hello")
    opened.page.keyboard.press("Enter")
    client = server.client()
    client.wait("response.create")
    client.reply("item_0000000000000000000", "Hello to you.", np.zeros(4800, np.int16))
    opened.page.locator(".said").get_by_text("Hello to you.").wait_for()


def test_a_microphone_that_gives_nothing_but_zeros_is_found_out(visit: Open) -> None:
    opened = visit(microphone=np.zeros(48_000, "f4"))
    opened.talk()
    opened.page.get_by_text("The microphone gives nothing but silence.").wait_for()
