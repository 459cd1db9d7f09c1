"""What the page keeps: over a reload, over a restart of the server, and not for another tab."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, Visit
from tests.browser.standin import RATE, Client, StandIn, item_id

pytestmark = pytest.mark.browser

QUESTION, REPLY = item_id(1), item_id(2)
TOLD = "How is the weather?"
CLAUSES = ("It should be mild,", "around noon.", "In the evening it may rain.")
TEXT = " ".join(CLAUSES)
TOLD_AGAIN = "The server did not know this conversation, so this page has told it what was said."


def question(client: Client) -> None:
    content = [{"type": "input_audio", "transcript": "How is the weather?"}]
    item = {"id": QUESTION, "type": "message", "role": "user", "content": content}
    client.send("conversation.item.done", item=item | {"status": "completed"})


def half_a_reply(opened: Visit, client: Client) -> None:
    """All of its text, and the sound of little more than its first clause."""
    opened.talk()
    question(client)
    client.send("response.created", response={"id": "resp_1"})
    client.text(REPLY, TEXT)
    client.send("voiceloop.output.clause", item_id=REPLY, audio_ms=0, text=CLAUSES[0])
    client.say(REPLY, np.full(RATE // 2, 3000, np.int16))
    client.send("voiceloop.output.clause", item_id=REPLY, audio_ms=500, text=CLAUSES[1])
    client.say(REPLY, np.full(240, 3000, np.int16), RATE // 2)
    played = "voiceloop.played"
    client.until(lambda: client.of(played) and client.of(played)[-1]["audio_ms"] > 500, "unheard")


def forgetting(client: Client) -> None:
    """A server that knows no session of before."""
    client.send("session.created", session={})
    client.send("error", error={"code": "resume_failed", "message": "no such session"})
    client.send("voiceloop.session.token", token="token-2", expires_in_s=60)


def resuming(client: Client) -> None:
    """A server that knows the session, and how much of the reply was heard."""
    client.send("session.created", session={})
    client.send("voiceloop.session.resumed")
    question(client)
    content = [{"type": "output_audio", "transcript": "It should be mild, around"}]
    item = {"id": REPLY, "type": "message", "role": "assistant", "content": content}
    client.send("conversation.item.done", item=item | {"status": "incomplete"})
    client.send("voiceloop.session.token", token="token-2", expires_in_s=60)


def shows(page: Page, unheard: str) -> None:
    """The question, and the reply with what was not heard of it."""
    expect(page.locator(".entry.user .said")).to_have_text("How is the weather?")
    reply = page.locator(".entry.assistant .said")
    expect(reply).to_be_visible()
    expect(page.locator("#welcome")).to_be_hidden()
    expect(reply.locator(".unheard")).to_have_text(unheard)
    expect(reply).to_have_text(re.compile(r"not heard from 0\.5 s on"))
    told = reply.inner_text().replace("not heard from 0.5 s on", "")
    assert told.split() == TEXT.split()


def items(client: Client) -> list[tuple[str, str]]:
    created = [event["item"] for event in client.of("conversation.item.create")]
    return [(item["role"], item["content"][0]["text"]) for item in created]


def test_a_page_that_is_reloaded_in_the_middle_of_a_reply_goes_on(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    half_a_reply(opened, server.client())
    server.greet = resuming
    opened.page.reload()
    again = server.client(2)
    assert again.wait("voiceloop.resume")["token"] == "token-1"
    again.wait("session.update")
    # How many words were heard, the server knows.
    shows(opened.page, "noon. In the evening it may rain.")
    expect(opened.page.locator(".entry")).to_have_count(2)
    expect(opened.page.locator("#announcer")).to_be_empty()
    assert not again.of("conversation.item.create")
    opened.phase("Microphone off")
    opened.page.reload()
    third = server.client(3)
    assert third.wait("voiceloop.resume")["token"] == "token-2"
    shows(opened.page, "noon. In the evening it may rain.")


def test_what_was_said_is_there_while_no_server_is(visit: Open, server: StandIn) -> None:
    opened = visit()
    half_a_reply(opened, server.client())
    server.refusal = (503, "the models are being loaded")
    opened.page.reload()
    shows(opened.page, "around noon. In the evening it may rain.")


def test_a_reply_in_which_the_connection_is_lost_is_shown_as_interrupted(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    half_a_reply(opened, server.client())
    server.stop()
    opened.phase("Not connected")
    shows(opened.page, "around noon. In the evening it may rain.")


@pytest.mark.parametrize("reload", [False, True])
def test_a_server_that_has_restarted_is_told_again_what_was_said_and_heard(
    visit: Open, server: StandIn, reload: bool
) -> None:
    opened = visit()
    client = server.client()
    client.text(item_id(8), "Hello.", "resp_0")
    client.send("response.output_audio_transcript.done", item_id=item_id(8), transcript="Hello.")
    half_a_reply(opened, client)
    words = {"committed": "and", "tentative": "now", "item_id": item_id(3)}
    client.send("voiceloop.transcript", **words)  # which nobody ever answers
    expect(opened.page.locator(".entry.user")).to_have_count(2)
    server.greet = forgetting
    if reload:
        opened.page.reload()
    else:
        client.close()
    again = server.client(2)
    again.wait("voiceloop.resume")
    again.wait("conversation.item.create", 3)
    assert items(again) == [
        ("assistant", "Hello."),
        ("user", "How is the weather?"),
        ("assistant", CLAUSES[0]),
    ]
    created = again.of("conversation.item.create")
    assert [one["previous_item_id"] for one in created] == ["root", item_id(8), QUESTION]
    for event in created:  # which the page knows already
        item = event["item"] | {"status": "completed"}
        again.send("conversation.item.done", item=item)
    note = opened.page.locator(".entry.note .said")
    expect(note).to_have_text(TOLD_AGAIN)
    expect(opened.page.locator(".entry")).to_have_count(4)
    reply = opened.page.locator(".entry.assistant .said").last
    expect(reply.locator(".unheard")).to_have_text("around noon. In the evening it may rain.")
    expect(reply.locator(".aside")).to_have_text("not heard from 0.5 s on")
    # And with the next one as well, which is told that of this one.
    again.close()
    third = server.client(3)
    assert third.wait("voiceloop.resume")["token"] == "token-2"
    third.wait("conversation.item.create", 3)
    assert items(third) == items(again)


ASKED_AGAIN = "The connection broke off before the answer, so your question is asked again."


@pytest.mark.parametrize("begun", [False, True], ids=["nothing came", "nothing was heard"])
@pytest.mark.parametrize("known", [False, True], ids=["restarted", "connected again"])
@pytest.mark.parametrize("told", [False, True], ids=["lost", "arrived"])
def test_a_question_that_was_being_answered_is_asked_again(
    visit: Open, server: StandIn, told: bool, known: bool, begun: bool
) -> None:
    page, client = visit().page, server.client()
    client.text(item_id(8), "Hello.", "resp_0")
    client.send("response.output_audio_transcript.done", item_id=item_id(8), transcript="Hello.")
    client.wait("session.update")
    page.get_by_label("Type instead").fill("How is the weather?")
    page.keyboard.press("Enter")
    asked = client.wait("conversation.item.create")["item"]
    if told:
        client.send("conversation.item.added", item=asked)
    if begun:
        client.send("response.created", response={"id": "resp_1"})
        client.text(REPLY, "It should")
        expect(page.locator(".entry.assistant")).to_have_count(2)
    server.greet = resuming if known else forgetting
    client.close()
    again = server.client(2)
    again.wait("response.create")
    expect(page.locator(".entry.note").last).to_contain_text(ASKED_AGAIN)
    before = [] if known else [("assistant", "Hello.")]
    assert items(again) == ([] if known and told else [*before, ("user", TOLD)])
    if not (known and told):
        last = again.of("conversation.item.create")[-1]
        assert last["item"] == asked and "previous_item_id" not in last
    expect(page.locator(".entry.user")).to_have_count(2 if known else 1)
    again.send("response.created", response={"id": "resp_2"})
    again.send("response.done", response={"id": "resp_2", "status": "completed"})
    # What has been answered, or stopped, is not asked again.
    again.wait("session.update")
    server.greet = forgetting
    again.close()
    server.client(3).wait("session.update")
    page.wait_for_timeout(200)
    assert not server.client(3).of("response.create")


def test_whoever_was_heard_when_the_connection_broke_off_is_told(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    client = server.client()
    client.wait("session.update")
    client.send("input_audio_buffer.speech_started", item_id="u1")
    opened.phase("Hearing you")
    server.greet = forgetting
    client.close()
    server.client(2).wait("session.update")
    expect(opened.page.locator(".entry.note .said")).to_have_text(
        "The connection broke off before you had an answer. Ask again."
    )
    assert not server.client(2).of("response.create")


def test_where_nothing_was_said_nothing_is_told(visit: Open, server: StandIn) -> None:
    opened = visit()
    server.client().wait("session.update")
    server.greet = forgetting
    server.client().close()
    server.client(2).wait("session.update")
    opened.page.wait_for_timeout(200)
    expect(opened.page.locator(".entry")).to_have_count(0)
    expect(opened.page.locator("#welcome")).to_be_visible()


def test_under_another_key_the_conversation_goes_on(visit: Open, server: StandIn) -> None:
    opened = visit()
    half_a_reply(opened, server.client())
    page = opened.page
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("API key").fill("secret-1")
    page.get_by_role("button", name="Apply").click()
    again = server.client(2)
    again.wait("conversation.item.create", 2)
    assert not again.of("voiceloop.resume")
    assert items(again) == [("user", "How is the weather?"), ("assistant", CLAUSES[0])]


def test_a_tab_that_was_duplicated_begins_a_conversation_of_its_own(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    half_a_reply(opened, server.client())

    def fresh(client: Client) -> None:
        client.send("session.created", session={})
        client.send("voiceloop.session.token", token="token-of-the-copy", expires_in_s=60)

    server.greet = fresh
    with opened.context.expect_page() as opening:
        opened.page.evaluate("void window.open(location.href)")  # with all that is kept
    copy = opening.value
    second = server.client(2)
    second.wait("session.update")
    assert not second.of("voiceloop.resume") and not second.of("conversation.item.create")
    expect(copy.locator(".entry")).to_have_count(0)
    assert not server.client(1).closed
    # Each goes on with its own when it is reloaded.
    server.greet = resuming
    copy.reload()
    assert server.client(3).wait("voiceloop.resume")["token"] == "token-of-the-copy"
    opened.page.reload()
    assert server.client(4).wait("voiceloop.resume")["token"] == "token-1"
    shows(opened.page, "noon. In the evening it may rain.")


@pytest.mark.parametrize("left", ["not JSON", "7", '[{"id": 1}, null, {"role": "user"}]'])
def test_a_page_that_finds_something_else_begins_all_the_same(
    visit: Open, server: StandIn, left: str
) -> None:
    opened = visit(script=f"sessionStorage.setItem('voiceloop.transcript', {left!r})")
    server.client().wait("session.update")
    expect(opened.page.locator(".entry")).to_have_count(0)
    opened.page.reload()
    server.client(2).wait("voiceloop.resume")
    expect(opened.page.locator(".entry")).to_have_count(0)


@pytest.mark.parametrize(
    "without",
    [
        "Object.defineProperty(window, 'sessionStorage', {get() { throw new Error('closed'); }})",
        "Object.defineProperty(navigator, 'locks', {value: undefined})",
        "Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError'); }",
    ],
)
def test_where_nothing_can_be_kept_the_page_is_as_new_after_a_reload(
    visit: Open, server: StandIn, without: str
) -> None:
    opened = visit(script=without)
    half_a_reply(opened, server.client())
    opened.page.reload()
    server.client(2).wait("session.update")
    assert not server.client(2).of("voiceloop.resume")
    expect(opened.page.locator(".entry")).to_have_count(0)


def test_a_long_story_that_was_interrupted_is_folded(visit: Open, server: StandIn) -> None:
    page = visit().page
    client = server.client()
    story = "Once upon a time there was a fox.\n\n" + "It lived in the woods. " * 40
    client.text(REPLY, story)
    client.send("conversation.item.truncated", item_id=REPLY, content_index=0, audio_end_ms=1500)
    heard = {"outcome": "interrupted", "heard": "Once upon a time"}
    client.send("voiceloop.trace", response_id="resp_1", item_id=QUESTION, trace=heard)
    struck, button = page.locator(".unheard"), page.locator(".fold")
    assert struck.inner_text() == "there was a fox."
    expect(button).to_have_attribute("aria-expanded", "false")
    page.get_by_role("button", name="Show the rest").click()
    expect(struck).to_contain_text("It lived in the woods. " * 39)
    expect(button).to_have_attribute("aria-expanded", "true")
    client.send("voiceloop.trace", response_id="resp_1", item_id=QUESTION, trace=heard)
    page.get_by_role("button", name="Show less").press("Enter")
    expect(button).to_have_text("Show the rest")
    assert struck.inner_text() == "there was a fox."


def test_heard_and_unheard_words_are_apart(visit: Open, server: StandIn) -> None:
    page = visit().page
    client = server.client()
    for number, heard in enumerate(["I have nothing to say to", "I have nothing to say"], 3):
        client.text(item_id(number), "I have nothing to say to that.", f"r{number}")
        told = {"outcome": "silent", "heard": heard}
        client.send("voiceloop.trace", response_id=f"r{number}", item_id=None, trace=told)
    expect(page.locator(".unheard")).to_have_text(["that.", "to that."])
    for said in page.locator(".entry.assistant .said").all():
        words = said.inner_text().replace(" not heard", "")
        assert words == "I have nothing to say to that."
