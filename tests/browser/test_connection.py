"""The connection: lost, taken up again, refused; and the settings that it begins with."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HERE, Open
from tests.browser.standin import VOICES, Client, StandIn, greeting, item_id, standing_in

pytestmark = pytest.mark.browser

TAP: dict[str, Path] = {"tap_worklet": HERE / "tap-worklet.js"}


def message(number: int, role: str, text: str) -> dict[str, object]:
    kind = "input_text" if role == "user" else "output_text"
    content = [{"type": kind, "text": text}]
    base = {"type": "message", "object": "realtime.item", "status": "completed"}
    return {"id": item_id(number), "role": role, "content": content, **base}


def resuming(client: Client) -> None:
    """A server that knows the session: it sends the history, and something new."""
    client.send("session.created", session={})
    client.send("voiceloop.session.resumed")
    previous = None
    history = [(1, "user", "Hello."), (2, "assistant", "Hi."), (3, "assistant", "Where were we?")]
    for number, role, text in history:
        for kind in ("conversation.item.added", "conversation.item.done"):
            item = message(number, role, text)
            client.send(kind, item=item, previous_item_id=previous)
        previous = item_id(number)
    client.send("voiceloop.session.token", token="token-2", expires_in_s=60)


def test_a_server_that_restarts_is_found_again_and_the_session_goes_on(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    opened.talk()
    page, client = opened.page, server.client()
    client.send("conversation.item.added", item=message(1, "user", "Hello."))
    client.reply(item_id(2), "Hi.", np.full(4800, 1000, np.int16))
    client.wait("voiceloop.played")
    client.until(lambda: client.of("voiceloop.played")[-1]["audio_ms"] == 200, "not heard")
    server.stop()
    opened.phase("Not connected")
    expect(page.get_by_role("status")).to_contain_text("The connection is lost. Trying again in")
    # Once it waits that long, it will not connect by itself before the click.
    long = re.compile(r"in ([4-9]|1\d) s")
    expect(page.get_by_role("status")).to_contain_text(long, use_inner_text=True)
    with standing_in(resuming, server.port, **TAP) as second:
        page.get_by_role("button", name="Try now").click()
        again = second.client()
        opened.phase("Listening")
        again.until(lambda: len(again.frames) > 5, "the microphone is not sent any more")
        assert again.events[0] == {"type": "voiceloop.resume", "token": "token-1"}
        assert again.wait("session.update")["session"]["voiceloop"]["binary_audio"] is True
        # What was heard of the last reply, in case the server has not been told.
        assert again.wait("voiceloop.played")["audio_ms"] == 200
        expect(page.locator(".said")).to_have_text(["Hello.", "Hi.", "Where were we?"])
        expect(page.get_by_role("status")).to_be_hidden()


def test_a_reply_that_is_cut_by_the_network_plays_what_has_come(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    opened.talk()
    pcm = np.random.default_rng(1).integers(1000, 9000, 12_000).astype(np.int16)
    client = server.client()
    client.send("response.created", response={"id": "resp_1"})
    client.say(item_id(1), pcm)
    server.greet = resuming
    client.close()
    server.client(2).wait("session.update")
    opened.until("tap.blocks.length * 128 >= 12000")
    samples, _ = opened.recorded()
    assert np.array_equal(np.round(np.trim_zeros(samples) * 32768), pcm)


def test_a_server_that_is_not_there_is_tried_again(visit: Open, server: StandIn) -> None:
    opened = visit()
    server.client().wait("session.update")
    server.stop()
    status = opened.page.get_by_role("status")
    expect(status).to_contain_text("The connection is lost.")
    expect(opened.page.locator("#notice-countdown")).to_have_text("1 s")
    opened.page.get_by_label("Type instead").fill("Hello?")
    opened.page.keyboard.press("Enter")
    note = opened.page.locator(".entry.note .said")
    expect(note).to_have_text("Not sent: there is no connection to the server.")
    expect(opened.page.get_by_label("Type instead")).to_have_value("Hello?")


def test_a_server_that_refuses_is_left_alone(visit: Open, server: StandIn) -> None:
    server.greet = lambda client: client.close(1008, "The key is not known.")
    opened = visit()
    expect(opened.page.get_by_role("status")).to_contain_text("The key is not known.")
    opened.page.wait_for_timeout(1500)
    assert len(server.clients) == 1
    server.greet = greeting
    opened.page.get_by_role("button", name="Try now").click()
    server.client(2).wait("session.update")
    expect(opened.page.get_by_role("status")).to_be_hidden()


def test_settings_are_sent_and_kept(visit: Open, server: StandIn) -> None:
    page = visit().page
    client = server.client()
    client.wait("session.update")
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    voice = dialog.get_by_label("Voice")
    expect(voice).to_have_value("")
    voice.select_option("British")
    dialog.get_by_label("Instructions").fill("Be brief.")
    dialog.get_by_label("after a fixed silence").check()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Settings").click()
    expect(voice).to_have_value("")  # Escape has changed nothing
    voice.select_option("British")
    dialog.get_by_label("Instructions").fill("Be brief.")
    dialog.get_by_label("after a fixed silence").check()
    dialog.get_by_role("button", name="Apply").click()
    expect(dialog).to_be_hidden()
    session = client.wait("session.update", 2)["session"]
    assert session["instructions"] == "Be brief."
    assert session["audio"]["output"] == {"voice": "en-gb", "speed": 1}
    assert session["audio"]["input"]["turn_detection"] == {"type": "server_vad"}
    server.greet = resuming
    page.reload()
    again = server.client(2).wait("session.update")["session"]
    assert again == session


def test_what_is_cleared_is_as_the_server_has_it_of_its_own(visit: Open, server: StandIn) -> None:
    page = visit(
        script="localStorage.setItem('voiceloop.settings',"
        ' \'{"voice": "en-gb", "instructions": "Be brief."}\')'
    ).page
    client = server.client()
    first = client.wait("session.update")["session"]
    assert (first["instructions"], first["audio"]["output"]) == (
        "Be brief.",
        {"voice": "en-gb", "speed": 1},
    )
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    voice = dialog.get_by_label("Voice")
    expect(voice).to_have_value("en-gb")
    voice.select_option("")
    dialog.get_by_label("Instructions").fill("")
    dialog.get_by_role("button", name="Apply").click()
    then = client.wait("session.update", 2)["session"]
    assert (then["instructions"], then["audio"]["output"]) == (
        "Be kind.",
        {"voice": "en-us", "speed": 1},
    )


def test_language_and_speed_are_chosen_among_what_the_server_has(
    visit: Open, server: StandIn
) -> None:
    def greet(client: Client) -> None:
        told = {"voices": VOICES, "languages": ["en", "de", "zz-not a code"]}
        client.send("session.created", session={"voiceloop": told})

    server.greet = greet
    page, client = visit().page, server.client()
    client.wait("session.update")
    page.get_by_role("button", name="Settings").click()
    language = page.get_by_label("You speak")
    names = ["Default", "English", "German", "zz-not a code"]
    expect(language.locator("option")).to_have_text(names)
    language.select_option("de")
    page.get_by_label("It speaks").select_option("fast")
    page.get_by_role("button", name="Apply").click()
    audio = client.wait("session.update", 2)["session"]["audio"]
    assert audio["input"]["transcription"] == {"language": "de"}
    assert audio["output"] == {"speed": 1.25}
    # Another server may not know it.
    wrong = {"message": "no 'de'", "param": "session.audio.input.transcription.language"}
    client.send("error", error=wrong)
    audio = client.wait("session.update", 3)["session"]["audio"]
    assert audio["input"]["transcription"] == {"language": None}
    client.send("session.updated", session={"voiceloop": {"languages": ["en"]}})
    page.get_by_role("button", name="Settings").click()
    expect(language).to_be_hidden()  # there is nothing to choose


def test_another_voice_goes_on_with_the_conversation(visit: Open, server: StandIn) -> None:
    page = visit().page
    server.client().wait("session.update")

    def choose(voice: str) -> None:
        page.get_by_role("button", name="Settings").click()
        dialog = page.get_by_role("dialog", name="Settings")
        dialog.get_by_label("Voice").select_option(voice)
        dialog.get_by_role("button", name="Apply").click()

    choose("en-gb")
    server.client().wait("session.update", 2)
    page.get_by_label("Type instead").fill("Hello.")
    page.keyboard.press("Enter")
    server.client().wait("response.create")
    choose("de")
    session = server.client().wait("session.update", 3)["session"]
    assert session["audio"]["output"] == {"voice": "de", "speed": 1}
    assert len(server.clients) == 1


def test_voices_are_offered_by_language_that_of_the_servers_own_first(
    visit: Open, server: StandIn
) -> None:
    page = visit().page
    server.client().wait("session.update")
    page.get_by_role("button", name="Settings").click()
    groups = page.locator("#voice optgroup")
    labels = groups.evaluate_all("all => all.map(({label}) => label)")
    assert labels == ["English", "German", "Welsh", "Other languages"]
    assert groups.first.locator("option").all_inner_texts() == ["British", "American"]
    assert page.locator("#voice > option").inner_text() == "Default (American)"
    # What else is updated leaves the choice alone.
    page.get_by_label("Voice").select_option("de")
    server.client().send("session.updated", session={"voiceloop": {"voices": VOICES[1:]}})
    expect(groups).to_have_count(3)
    expect(page.get_by_label("Voice")).to_have_value("de")


def test_a_voice_that_the_server_lacks_is_told_where_it_is_chosen(
    visit: Open, server: StandIn
) -> None:
    page = visit(script="localStorage.setItem('voiceloop.settings', '{\"voice\": \"gone\"}')").page
    client = server.client()
    session = client.wait("session.update")["session"]
    assert session["audio"]["output"] == {"voice": "en-us", "speed": 1}
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    told = "This server has no voice called “gone”, so it speaks with its default."
    expect(dialog.get_by_role("status")).to_have_text(told)
    expect(dialog.get_by_label("Voice")).to_have_value("")
    dialog.get_by_label("Voice").select_option("de")
    expect(dialog.get_by_role("status")).to_be_empty()
    dialog.get_by_role("button", name="Apply").click()
    assert client.wait("session.update", 2)["session"]["audio"]["output"] == {
        "voice": "de",
        "speed": 1,
    }


def test_where_a_server_names_no_voices_the_chosen_one_spoils_nothing_else(
    visit: Open, server: StandIn
) -> None:
    own = {"type": "realtime", "audio": {"output": {"voice": "en-us"}}}
    server.greet = lambda client: client.send("session.created", session=own)
    page = visit(script="localStorage.setItem('voiceloop.settings', '{\"voice\": \"gone\"}')").page
    client = server.client()
    first = client.wait("session.update")["session"]
    assert first["audio"]["output"] == {"voice": "gone", "speed": 1}
    wrong = {"message": "no voice 'gone'", "param": "session.audio.output.voice"}
    client.send("error", error=wrong)
    session = client.wait("session.update", 2)["session"]
    assert session["audio"]["output"] == {"voice": "en-us", "speed": 1}
    assert session["voiceloop"]["binary_audio"] is True
    expect(page.locator("#transcript")).to_contain_text("no voice 'gone'")
    client.send("error", error=wrong)  # and it does not ask for ever
    client.send("error", error={"message": "the end"})
    expect(page.locator("#transcript")).to_contain_text("the end")
    assert len(client.of("session.update")) == 2


def test_the_key_is_offered_as_a_subprotocol_and_stays_in_the_tab(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    page = opened.page
    server.client().wait("session.update")
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    dialog.get_by_label("API key").fill("not a key")
    dialog.get_by_role("button", name="Apply").click()
    expect(dialog).to_be_visible()
    dialog.get_by_label("API key").fill("secret-1")
    dialog.get_by_role("button", name="Apply").click()
    headers = {name.lower(): value for name, value in server.client(2).headers.items()}
    offered = [name.strip() for name in headers["sec-websocket-protocol"].split(",")]
    assert offered == ["realtime", "openai-insecure-api-key.secret-1"]
    server.client(2).wait("session.update")
    assert not server.client(2).of("voiceloop.resume")
    assert "secret-1" not in page.evaluate("JSON.stringify(localStorage)")
    assert "secret-1" in page.evaluate("JSON.stringify(sessionStorage)")


@pytest.mark.parametrize(
    ("status", "key", "told"),
    [
        (401, "", "It asks for an API key, which goes into the settings."),
        (401, "secret-1", "It does not know the API key in the settings."),
        (403, "", "undeclared_proxy: start the server with --behind-proxy"),
    ],
)
def test_why_nobody_is_let_in_is_told_and_not_asked_again_and_again(
    status: int, key: str, told: str, visit: Open, server: StandIn
) -> None:
    # Of all this a browser tells a page's script no more than that there is no socket.
    server.refusal = (status, "undeclared_proxy: start the server with --behind-proxy")
    page = visit().page
    shown = page.get_by_role("status").first
    expect(shown).to_contain_text("The server refuses the connection.")
    if key:
        page.get_by_role("button", name="Settings").click()
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Apply").click()
    expect(shown).to_contain_text(told)
    refused = server.refused
    page.wait_for_timeout(1500)
    assert server.refused == refused
    server.refusal = None
    page.get_by_role("button", name="Try now").click()
    server.client().wait("session.update")
    expect(shown).to_be_hidden()


def test_while_models_are_loaded_the_page_waits_and_goes_on_by_itself(
    visit: Open, server: StandIn
) -> None:
    server.refusal = (503, "the models are being loaded")
    page = visit().page
    status = page.get_by_role("status").first
    expect(status).to_contain_text("The models are being loaded. This page connects by itself")
    server.refuses(3)
    expect(status).to_contain_text("The models are being loaded.")
    server.refusal = None
    server.client().wait("session.update")
    expect(status).to_be_hidden()
