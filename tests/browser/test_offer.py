"""The offer of a language-model server on this machine: the notice, the click, and what follows, in
front of the real server over scripted engines and a stand-in of Ollama."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.standin import StandIn
from tests.llm.remote.chatservers import Scripted, refusing, saying
from tests.llm.remote.localstandins import ollama, standing_in
from tests.server.offering import offering
from tests.server.serving import Serving

pytestmark = pytest.mark.browser


@pytest.fixture
def brain() -> Iterator[Scripted]:
    with standing_in(ollama(loaded=["gemma3:4b"]), saying("I am Gemma.")) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The user's own file of settings, which is not there yet."""
    return tmp_path / "voiceloop" / "config.toml"


@pytest.fixture
def beside(tmp_path: Path, file: Path, brain: Scripted) -> Iterator[Serving]:
    with offering(tmp_path, file, brain.port) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def test_one_click_has_it_reply_and_the_conversation_goes_on(
    visit: Open, server: StandIn, beside: Serving, brain: Scripted, file: Path
) -> None:
    server.port = beside.port  # nobody else is asked for anything
    page = visit(url=f"{beside.page}/").page
    offer, transcript = page.locator("#offer"), page.locator("#transcript")
    expect(offer).to_be_visible()
    expect(offer).to_contain_text("Ollama is running on this machine. Let it write the replies?")
    expect(offer.get_by_label("Model")).to_have_value("gemma3:4b")
    message = page.get_by_label("Type instead")
    message.fill("Who is speaking?")
    message.press("Enter")
    expect(transcript).to_contain_text("The scripted one.")
    offer.get_by_role("button", name="Use it").click()
    expect(transcript).to_contain_text(
        "Ollama writes the replies from now on, with gemma3:4b. The settings change that again."
    )
    expect(offer).to_be_hidden()
    expect(page.locator("#models")).to_contain_text("llm gemma3:4b at 127.0.0.1")
    expect(page.locator("#phase")).to_have_text("Microphone off")  # connected again
    message.fill("Really?")
    message.press("Enter")
    expect(transcript).to_contain_text("I am Gemma.")
    expect(transcript.get_by_text("The scripted one.")).to_have_count(1)
    expect(transcript).not_to_contain_text("interrupted")
    said = [one["content"] for one in brain.asked[-1]["messages"] if one["role"] != "system"]
    assert said == ["Who is speaking?", "The scripted one.", "Really?"]
    assert tomllib.loads(file.read_text())["llm"]["base_url"] == brain.url


def test_it_may_be_declined_for_good(visit: Open, server: StandIn, beside: Serving) -> None:
    server.port = beside.port
    page = visit(url=f"{beside.page}/").page
    page.get_by_role("button", name="Not now").click()
    expect(page.locator("#offer")).to_be_hidden()
    with page.expect_event("websocket") as opened:
        page.reload()
    opened.value.wait_for_event("framereceived", lambda frame: '"llm_servers":[{' in str(frame))
    expect(page.locator("#offer")).to_be_hidden()


def choose(page: Page, value: str) -> None:
    """Change in the settings who writes the replies."""
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Who writes the replies").select_option(value)
    page.get_by_role("button", name="Apply").click()


def test_another_model_and_the_own_one_again_are_chosen_in_the_settings(
    visit: Open, server: StandIn, beside: Serving, brain: Scripted, file: Path
) -> None:
    server.port = beside.port
    page = visit(url=f"{beside.page}/").page
    note, models = page.locator(".entry.note .said").last, page.locator("#models")
    page.get_by_role("button", name="Not now").click()
    choose(page, "ollama\nqwen2.5:7b")
    expect(note).to_contain_text("Ollama writes the replies from now on, with qwen2.5:7b.")
    expect(models).to_contain_text("llm qwen2.5:7b at 127.0.0.1")
    assert tomllib.loads(file.read_text())["llm"]["target"] == "qwen2.5:7b"
    brain.__exit__()
    expect(page.locator("#phase")).to_have_text("Microphone off")
    message = page.get_by_label("Type instead")
    message.fill("Who is speaking?")
    message.press("Enter")
    expect(note).to_contain_text("Ollama ")
    expect(note).to_contain_text("Start it again, or choose in the settings who answers.")
    expect(note).not_to_contain_text("127.0.0.1")
    page.reload()  # though it is gone
    expect(models).to_contain_text("llm qwen2.5:7b")
    choose(page, "none")
    told = "own language model writes the replies from now on"
    expect(note).to_contain_text(told, timeout=300_000)  # it is loaded first
    expect(models).to_contain_text("llm starter")
    assert tomllib.loads(file.read_text())["llm"] == {}


def test_open_settings_gain_the_choice_once_servers_are_found_and_then_keep_it(
    visit: Open, server: StandIn
) -> None:
    page = visit().page
    client = server.client()
    page.get_by_role("button", name="Settings").click()
    writer = page.get_by_label("Who writes the replies")
    expect(writer).to_be_hidden()
    found = {"id": "ollama", "name": "Ollama", "models": ["gemma3:4b"], "used": False}
    client.send("session.updated", session={"voiceloop": {"llm_servers": [found]}})
    writer.select_option("ollama\ngemma3:4b")
    client.send("session.updated", session={"voiceloop": {"llm_servers": [found], "speed": 1}})
    client.send("error", error={"message": "That was the second."})
    expect(page.locator("#transcript")).to_contain_text("That was the second.")
    expect(writer).to_have_value("ollama\ngemma3:4b")


def test_where_it_does_not_reply_the_page_says_why_and_it_may_be_asked_again(
    visit: Open, server: StandIn, beside: Serving, brain: Scripted, file: Path
) -> None:
    server.port, brain.plays = beside.port, [refusing(400, {"error": "no memory left"})]
    page = visit(url=f"{beside.page}/").page
    use = page.get_by_role("button", name="Use it")
    use.click()
    expect(page.locator("#transcript")).to_contain_text("no memory left")
    expect(use).to_be_enabled()
    assert not file.exists()


def test_a_name_is_shown_as_it_is_and_junk_is_no_offer(visit: Open, server: StandIn) -> None:
    page = visit().page
    client, offer = server.client(), page.locator("#offer")
    expect(offer).to_be_hidden()

    def tell(*servers: Any) -> None:
        client.send("session.updated", session={"voiceloop": {"llm_servers": [*servers]}})

    tell({"id": "80", "name": "a server at port 80", "models": ["<b>bold</b>"]})
    expect(offer).to_contain_text("A server at port 80 is running on this machine.")
    expect(offer.get_by_label("Model")).to_have_value("<b>bold</b>")
    offer.get_by_role("button", name="Use it").click()
    assert client.wait("voiceloop.llm_server.use")["server"] == "80"
    tell(None, 5, {"id": "a"}, {"id": "a", "name": "b", "models": []}, {"id": 1, "models": [2]})
    expect(offer).to_be_hidden()
