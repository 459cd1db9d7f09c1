"""What is said and shown: the transcript, typing, push-to-talk, the latency of each turn."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.standin import RATE, Client, StandIn, item_id

pytestmark = pytest.mark.browser

TOLD = ("models", "examples", "notes")
"""Lists of texts that a server tells of itself."""

ITEM = item_id(1)
PARTS = {"endpoint wait": 180.0, "asr": 20.0, "llm": 10.0, "tts": 3.5, "output": 0.5}


def trace(ms: float = 214.0, outcome: str = "done", heard: str = "") -> dict[str, object]:
    scale = ms / sum(PARTS.values())
    return {
        "turn": 1,
        "outcome": outcome,
        "heard": heard,
        "voice_to_voice_ms": ms,
        "endpoint_to_sound_ms": ms / 4,
        "parts": [
            {"name": name, "ms": part * scale, "owner": name.split()[0]}
            for name, part in PARTS.items()
        ],
        "counters": {"drafted": 40, "accepted": 30},
    }


def test_words_of_the_user_settle_and_are_read_out_once(visit: Open, server: StandIn) -> None:
    page = visit().page
    client = server.client()
    said = page.locator(".entry.user .said")
    client.send("voiceloop.transcript", item_id="u1", committed="why is", tentative="this guy")
    expect(said).to_have_text("why is this guy")
    expect(said.locator(".tentative")).to_have_text("this guy")
    client.send("voiceloop.transcript", item_id="u1", committed="why is the sky", tentative="")
    expect(said).to_have_text("why is the sky")
    expect(page.locator("#announcer")).to_be_empty()
    client.send(
        "conversation.item.input_audio_transcription.completed",
        item_id="u1",
        content_index=0,
        transcript="Why is the sky blue?",
    )
    expect(said).to_have_text("Why is the sky blue?")
    expect(said.locator(".tentative")).to_have_count(0)
    expect(page.locator("#announcer")).to_have_text("You: Why is the sky blue?")
    assert page.locator("#announcer").get_attribute("aria-live") == "polite"


def test_what_was_not_heard_of_a_reply_is_grey_with_a_word_for_it(
    visit: Open, server: StandIn
) -> None:
    page = visit().page
    client = server.client()
    client.text(ITEM, "It should be mild, around noon.")
    client.send("conversation.item.truncated", item_id=ITEM, content_index=0, audio_end_ms=1234)
    client.send(
        "voiceloop.trace",
        response_id="resp_1",
        item_id=item_id(9),
        trace=trace(outcome="interrupted", heard="It should be mild,"),
    )
    entry = page.locator(".entry.assistant")
    expect(entry.locator(".unheard")).to_have_text("around noon.")
    expect(entry.locator(".aside")).to_have_text("not heard from 1.2 s on")
    expect(entry.locator(".said")).to_contain_text("It should be mild,")
    expect(entry.locator(".who .figure")).to_have_text("214 ms")
    style = "node => getComputedStyle(node).textDecorationLine"
    assert entry.locator(".unheard").evaluate(style) == "none"


def test_a_reply_of_which_nothing_was_heard_says_so_and_is_not_read_out(
    visit: Open, server: StandIn
) -> None:
    page = visit().page
    client = server.client()
    client.text(ITEM, "Sunlight is")
    client.send("conversation.item.truncated", item_id=ITEM, content_index=0, audio_end_ms=0)
    told = trace(outcome="interrupted", heard="")
    client.send("voiceloop.trace", response_id="resp_1", item_id=item_id(9), trace=told)
    said = page.locator(".entry.assistant .said")
    expect(said).to_have_text("not heard Sunlight is")
    client.text(item_id(2), "It is mild.", "resp_2")
    done = "response.output_audio_transcript.done"
    client.send(done, item_id=item_id(2), transcript="It is mild.")
    expect(page.locator("#announcer")).to_have_text("voiceloop: It is mild.")


def test_whoever_reads_earlier_words_comes_to_the_latest_by_a_click_or_by_saying_something(
    visit: Open, server: StandIn
) -> None:
    page = visit().page
    client = server.client()
    client.wait("session.update")
    for number in range(1, 41):
        client.text(item_id(number), f"Sentence {number} of a long talk.", f"r{number}")
    latest, last = page.get_by_role("button", name="To the latest"), page.locator(".entry").last
    expect(last).to_be_in_viewport(ratio=1)
    expect(latest).to_be_hidden()

    def read_the_first() -> None:
        page.locator("#conversation").evaluate("node => node.scrollTo(0, 0)")
        expect(latest).to_be_visible()

    read_the_first()
    client.text(item_id(41), "Nobody is torn away from what they read.", "r41")
    expect(last).to_contain_text("torn away")
    expect(last).not_to_be_in_viewport()
    latest.press("Enter")
    expect(last).to_be_in_viewport(ratio=1)
    expect(latest).to_be_hidden()
    expect(page.locator("#conversation")).to_be_focused()
    read_the_first()
    page.get_by_label("Type instead").fill("And now?")
    page.keyboard.press("Enter")
    expect(page.locator(".entry.user")).to_be_in_viewport(ratio=1)
    expect(latest).to_be_hidden()
    read_the_first()
    client.send("voiceloop.transcript", item_id="u1", committed="Or", tentative="spoken")
    expect(page.locator(".entry.user").last).to_be_in_viewport(ratio=1)


def test_a_question_that_is_typed_before_the_answer_sounds_comes_next(
    visit: Open, server: StandIn
) -> None:
    page, client = visit().page, server.client()
    client.wait("session.update")
    said = page.locator(".said")
    client.send("input_audio_buffer.speech_started", item_id="u1")
    client.send("voiceloop.transcript", item_id="u1", committed="What is", tentative="the capital")
    expect(said).to_have_text("What is the capital")
    page.get_by_label("Type instead").fill("What is 7 times 8?")
    page.keyboard.press("Enter")
    expect(said).to_have_text(["What is the capital", "What is 7 times 8? comes next"])
    client.send("input_audio_buffer.speech_stopped", item_id="u1")
    client.send("input_audio_buffer.committed", item_id="u1")
    client.send("response.created", response={"id": "resp_1"})
    client.text(ITEM, "Lisbon.")
    words = ["What is the capital", "Lisbon.", "What is 7 times 8? comes next"]
    expect(said).to_have_text(words)
    client.send("response.done", response={"id": "resp_1", "status": "completed"})
    page.wait_for_timeout(100)
    kinds = {event["type"] for event in client.events}
    assert not kinds & {"response.cancel", "response.create", "conversation.item.create"}
    client.send("voiceloop.trace", response_id="resp_1", item_id="u1", trace=trace())
    item = client.wait("conversation.item.create")["item"]
    client.wait("response.create")
    assert item["content"][0]["text"] == "What is 7 times 8?"
    client.text(item_id(2), "56.", "resp_2")
    expect(said).to_have_text([*words[:2], "What is 7 times 8?", "56."])


def test_a_request_that_came_too_early_is_made_again(visit: Open, server: StandIn) -> None:
    page, client = visit().page, server.client()
    client.wait("session.update")
    page.get_by_label("Type instead").fill("What is 7 times 8?")
    page.keyboard.press("Enter")
    client.wait("response.create")
    client.send("response.created", response={"id": "resp_1"})
    busy = {"code": "conversation_already_has_active_response", "message": "one is in progress"}
    client.send("error", error=busy)
    page.wait_for_timeout(100)
    assert len(client.of("response.create")) == 1
    client.send("response.done", response={"id": "resp_1", "status": "completed"})
    client.wait("response.create", 2)
    assert len(client.of("conversation.item.create")) == 1
    expect(page.locator(".entry.note")).to_have_count(0)


def test_what_failed_is_told_in_words_with_something_to_do(visit: Open, server: StandIn) -> None:
    page, client = visit().page, server.client()
    for code, message in (("nothing_heard", "none"), (None, "the reply failed: no memory left")):
        details = {"error": {"type": "server_error", "code": code, "message": message}}
        response = {"id": "r", "status": "failed", "status_details": details, "output": []}
        client.send("response.done", response=response)
    expect(page.locator(".entry.note .said")).to_have_text(
        [
            "No words were understood. Say it again, or type it.",
            "There is no answer: no memory left. Ask again.",
        ]
    )


def test_a_conversation_is_saved_copied_and_left_for_a_new_one(
    visit: Open, server: StandIn
) -> None:
    opened = visit()
    page, client = opened.page, server.client()
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    more = page.get_by_role("button", name="More")
    more.click()
    expect(page.get_by_role("button", name="Copy")).to_be_disabled()
    page.keyboard.press("Escape")
    client.wait("session.update")
    page.get_by_label("Type instead").fill("Why?")
    page.keyboard.press("Enter")
    client.reply(ITEM, "Because.", np.zeros(480, np.int16))
    expect(page.locator(".said")).to_have_text(["Why?", "Because."])
    more.click()
    with page.expect_download() as loading:
        page.get_by_role("button", name="Save as text").click()
    text = "You: Why?\n\nvoiceloop: Because.\n"
    assert loading.value.path().read_text() == text
    assert re.fullmatch(r"voiceloop-\d{4}-\d\d-\d\d\.txt", loading.value.suggested_filename)
    more.click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == text
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".entry")).to_have_count(0)
    expect(page.locator("#welcome")).to_be_visible()
    second = server.client(2)
    second.wait("session.update")
    kinds = {event["type"] for event in second.events}
    assert not kinds & {"voiceloop.resume", "conversation.item.create", "response.create"}


def test_only_the_voice_has_colour_and_only_while_it_speaks(visit: Open, server: StandIn) -> None:
    opened = visit()
    opened.talk()
    voice = opened.page.evaluate(
        "(() => { const probe = document.createElement('i');"
        " probe.style.color = 'var(--voice)'; document.body.append(probe);"
        " const { color } = getComputedStyle(probe); probe.remove(); return color; })()"
    )
    coloured = (
        "[...document.body.querySelectorAll('*')].filter((node) => ['color', 'backgroundColor']"
        f".some((name) => getComputedStyle(node)[name] === '{voice}'))"
        ".map((node) => node.id || node.className)"
    )
    assert opened.page.evaluate(coloured) == []
    client = server.client()
    client.send("response.created", response={"id": "resp_1"})
    client.text(ITEM, "A colourful reply.")
    client.say(ITEM, np.full(RATE * 3, 3000, np.int16))
    opened.phase("Speaking")
    assert opened.page.evaluate(coloured) == ["who", "phase"]
    opened.page.keyboard.press("Escape")
    client.send("response.done", response={"id": "resp_1", "status": "cancelled"})
    opened.phase("Listening")
    assert opened.page.evaluate(coloured) == []


def test_both_voices_are_drawn(visit: Open, server: StandIn) -> None:
    loud = (0.2 * np.sin(np.arange(48_000) * 0.05)).astype("f4")
    opened = visit(microphone=loud)
    drawn = (
        "(() => { const canvas = document.getElementById('voice-line');"
        " const { width, height } = canvas;"
        " const copy = new OffscreenCanvas(width, height).getContext('2d');"
        " copy.drawImage(canvas, 0, 0);"
        " const pixels = copy.getImageData(0, 0, width, height);"
        " const rows = { voice: 0, ink: 0 };"
        " for (let i = 0; i < pixels.data.length; i += 4) {"
        "  const [r, g, b, a] = pixels.data.slice(i, i + 4);"
        "  if (a === 255 && r > 150 && b < 60) rows.voice += 1;"
        "  if (a === 255 && r < 60 && b < 60) rows.ink += 1; }"
        " return rows; })()"
    )
    assert opened.page.evaluate(drawn) == {"voice": 0, "ink": 0}
    opened.talk()
    opened.until(f"{drawn}.ink > 200")
    assert opened.page.evaluate(drawn)["voice"] == 0
    server.client().say(ITEM, np.full(RATE * 2, 9000, np.int16))
    opened.until(f"{drawn}.voice > 200")


def test_what_is_typed_is_sent_shown_once_and_answered(visit: Open, server: StandIn) -> None:
    page = visit().page
    client = server.client()
    client.wait("session.update")
    page.get_by_label("Type instead").fill("  Tell me a joke.  ")
    page.keyboard.press("Enter")
    item = client.wait("conversation.item.create")["item"]
    assert (item["type"], item["role"]) == ("message", "user")
    assert item["content"] == [{"type": "input_text", "text": "Tell me a joke."}]
    client.wait("response.create")
    client.send("conversation.item.added", item=item, previous_item_id=None)
    client.send("conversation.item.done", item=item, previous_item_id=None)
    pcm = np.full(4800, 1000, np.int16)
    client.reply(ITEM, "Knock, knock.", pcm)
    expect(page.locator(".said")).to_have_text(["Tell me a joke.", "Knock, knock."])
    client.until(lambda: client.of("voiceloop.played"), "not heard, though the user has typed")
    expect(page.get_by_label("Type instead")).to_have_value("")
    page.keyboard.press("Enter")  # nothing to send
    assert len(client.of("conversation.item.create")) == 1


def test_typing_cuts_a_reply_off(visit: Open, server: StandIn) -> None:
    opened = visit()
    opened.talk()
    client = server.client()
    client.send("response.created", response={"id": "resp_1"})
    client.text(ITEM, "On and on.")
    client.say(ITEM, np.full(RATE * 3, 3000, np.int16))
    opened.phase("Speaking")
    opened.page.get_by_label("Type instead").fill("Stop")
    opened.page.keyboard.press("Enter")
    client.wait("response.cancel")
    assert not client.of("response.create")
    client.send("response.done", response={"id": "resp_1", "status": "cancelled"})
    client.wait("response.create")
    kinds = [event["type"] for event in client.events if "played" not in event["type"]]
    assert kinds[-4:] == [
        "response.cancel",
        "conversation.item.truncate",
        "conversation.item.create",
        "response.create",
    ]


def test_push_to_talk_sends_what_is_said_while_it_is_held(visit: Open, server: StandIn) -> None:
    opened = visit(script="localStorage.setItem('voiceloop.settings', '{\"turns\": \"none\"}')")
    page, client = opened.page, server.client()
    assert client.wait("session.update")["session"]["audio"]["input"]["turn_detection"] is None
    page.get_by_role("button", name="Start talking").click()
    opened.phase("Hold to talk")
    assert not client.frames
    page.keyboard.down(" ")
    opened.phase("Hearing you")
    client.wait("input_audio_buffer.clear")
    client.until(lambda: len(client.frames) >= 20, "no sound while it is held")
    page.keyboard.up(" ")
    client.wait("response.create")
    kinds = [event["type"] for event in client.events][-3:]
    assert kinds == ["input_audio_buffer.clear", "input_audio_buffer.commit", "response.create"]
    opened.phase("Thinking")
    client.send("response.created", response={"id": "resp_1"})
    client.send("response.done", response={"id": "resp_1", "status": "completed"})
    opened.phase("Hold to talk")
    # The same with the button; a slip of the finger is no turn.
    hold = page.get_by_role("button", name="Hold to talk")
    hold.hover()
    page.mouse.down()
    client.wait("input_audio_buffer.clear", 2)
    sent = len(client.frames)
    client.until(lambda: len(client.frames) >= sent + 20, "no sound while it is held")
    page.mouse.up()
    client.wait("response.create", 2)
    client.send("response.created", response={"id": "resp_2"})
    client.send("response.done", response={"id": "resp_2", "status": "completed"})
    opened.phase("Hold to talk")
    hold.dispatch_event("pointerdown", {"button": 0, "pointerId": 1})
    hold.dispatch_event("pointercancel")
    client.wait("input_audio_buffer.clear", 4)
    assert len(client.of("input_audio_buffer.commit")) == 2


def test_the_space_bar_writes_a_space_where_the_user_types(visit: Open, server: StandIn) -> None:
    opened = visit(script="localStorage.setItem('voiceloop.settings', '{\"turns\": \"none\"}')")
    opened.page.get_by_role("button", name="Start talking").click()
    opened.phase("Hold to talk")
    opened.page.get_by_label("Type instead").press_sequentially("a b")
    expect(opened.page.get_by_label("Type instead")).to_have_value("a b")
    assert not server.client().of("input_audio_buffer.clear")


def test_latency_is_told_in_words_and_drawn_for_every_turn(visit: Open, server: StandIn) -> None:
    page = visit(viewport={"width": 1400, "height": 800}).page
    client = server.client()
    for number, ms in enumerate([200.0, 400.0, 300.0, 300.0], 1):
        client.text(item_id(number), f"Reply {number}.", f"r{number}")
        client.send("voiceloop.trace", response_id=f"r{number}", item_id="u", trace=trace(ms))
    nothing = {"voice_to_voice_ms": None, "parts": []}
    typed = trace() | nothing | {"endpoint_to_sound_ms": 320.0}
    client.send("voiceloop.trace", response_id="r5", item_id=item_id(5), trace=typed)
    words, panel = page.locator("#latency-words"), page.locator("#latency")
    expect(words).to_have_text("Answered 0.3 s after you asked.")
    silent = trace() | nothing | {"endpoint_to_sound_ms": None, "outcome": "abandoned"}
    client.send("voiceloop.trace", response_id="r6", item_id=item_id(6), trace=silent)
    expect(page.locator(".who .figure")).to_have_text(["200 ms", "400 ms", "300 ms", "300 ms"])
    expect(words).to_have_text("Answered 0.3 s after you asked.")  # a cough is no news
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Latency").click()
    expect(page.locator("#more")).to_be_hidden()
    expect(panel.get_by_text("Turn 4")).to_be_hidden()
    panel.get_by_text("Details").click()
    turns = page.locator("#turns button")
    expect(turns.locator(".figure")).to_have_text(
        ["no answer", "typed, 320 ms", "300 ms", "300 ms", "400 ms", "200 ms"]
    )
    expect(page.locator("#percentiles")).to_be_hidden()
    expect(page.locator("#latency-usually")).to_be_empty()
    client.send("voiceloop.trace", response_id="r7", item_id="u", trace=trace(300.0))
    expect(page.locator("#p50")).to_have_text("300 ms")
    expect(page.locator("#p95")).to_have_text("380 ms")
    expect(page.locator("#latency-usually")).to_have_text(
        "Of 5 answers half came within 0.3 s, and nearly all within 0.4 s."
    )
    expect(words).to_have_text(
        "Answered in 0.3 s, most of it making sure that you had finished."
        " By then the answer was ready."
    )
    expect(page.locator("#waterfall-title")).to_have_text("Turn 7: 300 ms")
    expect(page.locator("#waterfall .label")).to_have_text(list(PARTS))
    turns.nth(5).click()
    expect(page.locator("#waterfall-title")).to_have_text("Turn 2: 400 ms")
    expect(page.locator("#draft")).to_contain_text("Draft tokens accepted: 75 %.")
    # The bars follow each other, and fill the whole width together.
    boxes = [bar.bounding_box() for bar in page.locator("#waterfall .fill").all()]
    track = page.locator("#waterfall .track").first.bounding_box()
    assert track and all(boxes)
    at = track["x"]
    for box in boxes:
        assert box and box["x"] == pytest.approx(at, abs=1.5)
        at = box["x"] + box["width"]
    assert at == pytest.approx(track["x"] + track["width"], abs=2.5)


@pytest.mark.parametrize("size", [(360, 640), (390, 844), (667, 375)])
def test_latency_can_be_looked_at_on_a_phone(
    visit: Open, server: StandIn, size: tuple[int, int]
) -> None:
    page = visit(viewport={"width": size[0], "height": size[1]}).page
    client = server.client()
    panel = page.get_by_role("complementary", name="Latency")

    def toggle(figure: str = "") -> None:
        page.get_by_role("button", name="More").click()
        page.get_by_role("button", name=f"Latency{figure}").click()
        page.keyboard.press("Escape")

    expect(panel).to_be_hidden()
    toggle()
    expect(panel).to_have_text(re.compile("Nothing has been answered yet."))
    toggle()
    typed = trace() | {"voice_to_voice_ms": None, "parts": [], "endpoint_to_sound_ms": 320.0}
    client.send("voiceloop.trace", response_id="r", item_id=ITEM, trace=typed)
    toggle(" 320 ms")
    expect(panel.get_by_text("Answered 0.3 s after you asked.")).to_be_visible()
    client.send("voiceloop.trace", response_id="r2", item_id=ITEM, trace=trace())
    panel.get_by_text("Details").click()
    for what in ("Turn 2: 214 ms", "Turns", "Draft tokens accepted: 75 %."):
        shown = panel.get_by_text(what, exact=True)
        shown.scroll_into_view_if_needed()
        box = shown.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= size[0]
        expect(shown).to_be_in_viewport(ratio=1)
    toggle(" 214 ms")
    expect(panel).to_be_hidden()


@pytest.mark.parametrize("size", [(1280, 800), (390, 844), (667, 375)])
def test_the_page_begins_at_its_beginning(
    visit: Open, server: StandIn, size: tuple[int, int]
) -> None:
    def greet(client: Client) -> None:
        told = {
            "models": ["whisper tiny.en", "smart-turn-v3.2", "llm smollm2-135m-instruct", "piper"],
            "examples": [f"What is the capital of country number {n}?" for n in range(6)],
            "notes": ["it knows little", "it hears little"],
        }
        client.send("session.created", session={"voiceloop": told})

    server.greet = greet
    page = visit(viewport={"width": size[0], "height": size[1]}).page
    expect(page.get_by_role("button", name="country number 5")).to_be_attached()
    page.wait_for_timeout(100)
    expect(page.get_by_role("heading", name="Talk to it.")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Start talking")).to_be_in_viewport(ratio=1)
    expect(page.get_by_label("Type instead")).to_be_in_viewport(ratio=1)


def test_a_server_may_send_anything(visit: Open, server: StandIn) -> None:
    opened = visit()
    opened.talk()
    page, client = opened.page, server.client()
    html = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
    for raw in ("", "null", "[]", "{", '{"type": 7}', b"", b"\x00" * 29, b"\xff" * 5000):
        client.send_raw(raw)
    client.send("no.such.event", item_id=html, response=7, item=None)
    client.send("response.done", response={"output": [None, 7], "status": "failed"})
    client.send("voiceloop.trace", item_id=None, trace={"parts": "x", "voice_to_voice_ms": "y"})
    voices = [7, html, {"name": html, "label": html, "language_name": html}, {"name": 7}]
    lists = {name: [7, html] for name in TOLD} | {"voices": voices}
    client.send("session.created", session={"voiceloop": lists})
    page.get_by_role("button", name="Settings").click()
    assert page.locator("#voice optgroup").get_attribute("label") == html
    page.keyboard.press("Escape")
    client.text(ITEM, html)
    client.send("voiceloop.transcript", item_id="u1", committed=html, tentative="x" * 2_000_000)
    client.send("error", error={"message": html, "type": "server_error"})
    client.reply(item_id(2), "Still here.", np.full(4800, 1000, np.int16))
    client.until(lambda: client.of("voiceloop.played"), "nothing sounds any more")
    expect(page.locator(".entry.assistant .said").first).to_have_text(html)
    expect(page.locator(".entry.note .said").last).to_contain_text("That did not work: <img")
    expect(page.locator(".entry.note .said").first).to_contain_text(
        "does not understand. (8 times)"
    )
    assert page.title() == "voiceloop"
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_who_answers_is_shown_and_an_example_is_asked(visit: Open, server: StandIn) -> None:
    def greet(client: Client) -> None:
        told = {
            "models": ["whisper tiny.en", "llm small", "piper joe"],
            "examples": ["Why is the sky blue?", "Who wrote Hamlet?"],
            "notes": ["it knows little"],
        }
        client.send("session.created", session={"voiceloop": told})

    server.greet = greet
    page = visit().page
    welcome = page.locator("#welcome")
    expect(page.locator("#models")).to_have_text("whisper tiny.en, llm small, piper joe.")
    expect(welcome).not_to_contain_text("whisper")
    expect(welcome).to_contain_text("It knows little.")
    page.get_by_role("button", name="Who wrote Hamlet?").click()
    item = server.client().wait("conversation.item.create")["item"]
    assert item["content"] == [{"type": "input_text", "text": "Who wrote Hamlet?"}]
    server.client().wait("response.create")
    expect(page.locator(".entry.user .said")).to_have_text("Who wrote Hamlet?")
    expect(welcome).to_be_hidden()


def test_a_server_that_tells_nothing_of_itself_leaves_no_gaps(visit: Open, server: StandIn) -> None:
    page = visit().page
    server.client().wait("session.update")
    for name in ("examples", "notes"):
        expect(page.locator(f"#{name}")).to_be_hidden()
