"""Kept conversations: chosen in the settings, there again after a reload, and in the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.standin import StandIn, item_id
from tests.server.offering import STORY, offering
from tests.server.serving import Serving, until
from voiceloop.conversations.keeping import kept
from voiceloop.conversations.store import ConversationStore
from voiceloop.errors import VoiceloopError

pytestmark = pytest.mark.browser

OPEN = "voiceloop.conversation.open"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "conversations.sqlite3"


@pytest.fixture
def beside(tmp_path: Path, store: Path) -> Iterator[Serving]:
    with offering(tmp_path, tmp_path / "config.toml", store=store) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def choose(page: Page, label: str, name: str = "") -> None:
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Keep the conversation as").select_option(label=label)
    if name:
        field = page.get_by_label("Name of the new one")
        expect(field).to_be_focused()
        field.fill(name)
    page.get_by_role("button", name="Apply").click()


def ask(page: Page, question: str, answer: str) -> None:
    expect(page.locator("#phase")).to_have_text("Microphone off")
    message = page.get_by_label("Type instead")
    message.fill(question)
    message.press("Enter")
    expect(page.locator(".entry.assistant .said").last).to_have_text(answer)
    expect(page.locator("#phase")).to_have_text("Microphone off")


def turns(store: Path, name: str) -> list[tuple[str, str]]:
    with closing(ConversationStore(store, print)) as opened:
        return [(turn.said, turn.heard) for turn in opened.record(name).turns]


def test_it_is_named_goes_on_after_a_reload_and_in_a_terminal(
    visit: Open, server: StandIn, beside: Serving, store: Path
) -> None:
    server.port = beside.port
    page = visit(url=f"{beside.page}/").page
    said, name = page.locator(".entry .said"), page.locator("#kept-as")
    expect(page.locator("#models")).to_contain_text("llm")
    ask(page, "Who is speaking?", "The scripted one.")
    expect(name).to_be_hidden()
    choose(page, "New…", "Küche <b>")
    expect(name).to_have_text("Kept as Küche <b>")
    expect(said).to_have_count(0)
    ask(page, "Who is speaking?", "The scripted one.")
    ask(page, "Tell me a story", STORY)
    page.reload()
    words = ["Who is speaking?", "The scripted one.", "Tell me a story", STORY]
    expect(said).to_have_text(words)
    expect(name).to_have_text("Kept as Küche <b>")
    expect(page.locator("#announcer")).to_be_empty()
    expect(page.locator(".entry.note")).to_have_count(0)
    choose(page, "Not kept")
    expect(said).to_have_count(0)
    expect(page.locator("#welcome")).to_be_visible()
    ask(page, "Tell me a story", STORY)
    choose(page, "Küche <b>")
    expect(said).to_have_text(words)
    assert turns(store, "Küche <b>") == [*zip(words[::2], words[1::2], strict=True)]
    page.close()

    def goes_on() -> bool:
        try:
            with kept(store, "Küche <b>", print) as found:
                return [turn.said for turn in found.turns] == words[::2]
        except VoiceloopError:
            return False  # the server has it for another moment

    until(goes_on)


def test_the_choice_is_there_where_it_is_offered_and_a_refusal_is_told(
    visit: Open, server: StandIn
) -> None:
    page = visit(viewport={"width": 320, "height": 640}).page
    client = server.client()
    client.wait("session.update")
    choice = page.get_by_label("Keep the conversation as")
    page.get_by_role("button", name="Settings").click()
    expect(choice).to_be_hidden()
    page.keyboard.press("Escape")
    offered = ["<b>work</b>", 5, None, "", "x" * 64]
    client.send("session.updated", session={"voiceloop": {"conversations": offered}})
    page.get_by_role("button", name="Settings").click()
    expect(choice).to_be_visible()
    labels = choice.locator("option").all_inner_texts()
    assert labels == ["Not kept", "<b>work</b>", "x" * 64, "New…"]
    choice.select_option(label="New…")
    name, apply = page.get_by_label("Name of the new one"), page.get_by_role("button", name="Apply")
    for wrong in ("", "../up", "-x", "a:b", ".."):
        name.fill(wrong)
        apply.click()
        expect(choice).to_be_visible()  # the dialog is still open
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings").click()
    expect(choice).to_have_value("")
    page.keyboard.press("Escape")
    client.text(item_id(1), "Hello.", "r1")
    client.send("response.output_audio_transcript.done", item_id=item_id(1), transcript="Hello.")
    choose(page, "<b>work</b>")
    second = server.client(2)
    assert second.wait(OPEN)["name"] == "<b>work</b>"
    assert second.events[0]["type"] == OPEN
    message = "the conversation is open in another voiceloop"
    second.send("error", error={"message": message, "type": "invalid_request_error"})
    created = second.wait("conversation.item.create")  # the fresh session is told what was said
    assert created["item"]["content"][0]["text"] == "Hello."
    expect(page.locator(".entry.note").last).to_contain_text(message)
    expect(page.locator("#kept-as")).to_be_hidden()
    page.reload()
    server.client(3).wait("session.update")
    assert not server.client(3).of(OPEN)
