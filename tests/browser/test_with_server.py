"""The page in front of the real server and the starter models: nothing between them is scripted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf
from playwright.sync_api import Page, Playwright, WebSocket, expect

from tests.browser.conftest import EXPECTED, chromium
from tests.browser.standin import PATIENCE_S
from tests.server.serving import RATE, free_port, serving, spoken_question
from voiceloop.cli.main import main

pytestmark = pytest.mark.browser

HEADER = 28
"""Bytes before the samples of a binary message."""
QUESTION = "Why is the sky blue?"
SKY = (
    "Sunlight is a mix of all colors. The air scatters blue light much more than red light. "
    "So blue comes to us from every part of the sky."
)
RATE_IN = 16_000


@pytest.fixture
def microphone(tmp_path: Path) -> Path:
    """Asks, and asks again in the middle of the answer, which begins late on a busy machine."""
    said = spoken_question(QUESTION)
    room = np.random.default_rng(0).normal(0, 3e-4, 25 * RATE_IN).astype(np.float32)
    for at in (RATE_IN, 8 * RATE_IN):
        room[at : at + len(said)] += said
    path = tmp_path / "microphone.wav"
    sf.write(path, room, RATE_IN, "PCM_16")
    return path


class Watched:
    """A page, what went wrong in it, and the audio that it got, by item."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.audio: dict[str, bytearray] = {}
        self.played: dict[str, float] = {}
        self.events: list[dict[str, Any]] = []
        """What both have said, but for sound and reports of it."""
        self.responses = 0
        """How many are over."""
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type in ("error", "warning") and not EXPECTED.search(message.text)
                else None
            ),
        )
        page.on("websocket", self._watch)

    def unplayed_ms(self) -> float:
        """How much of the newest answer's audio has not been reported as played."""
        newest = list(self.audio)[-1]
        return len(self.audio[newest]) / 2 / RATE * 1000 - self.played.get(newest, 0.0)

    def played_ms(self) -> float:
        """How much of the newest answer has been played."""
        return self.played.get(next(reversed(self.audio), ""), 0.0)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail("it never came to be")
            self.page.wait_for_timeout(50)

    def _watch(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._received)
        socket.on("framesent", self._sent)

    def _received(self, payload: str | bytes) -> None:
        if isinstance(payload, bytes):
            self.audio.setdefault(payload[:24].decode(), bytearray()).extend(payload[HEADER:])
        else:
            self.events.append(json.loads(payload))
            self.responses += self.events[-1]["type"] == "response.done"

    def _sent(self, payload: str | bytes) -> None:
        if isinstance(payload, bytes):
            return
        event = json.loads(payload)
        if event["type"] == "voiceloop.played":
            self.played[event["item_id"]] = event["audio_ms"]
        else:
            self.events.append(event)


@pytest.fixture
def watched(playwright: Playwright, microphone: Path) -> Iterator[Watched]:
    fake = [
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={microphone}%noloop",
    ]
    browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", *fake])
    context = browser.new_context()
    context.grant_permissions(["microphone"])
    page = context.new_page()
    found = Watched(page)
    page.add_init_script(
        "localStorage.setItem('voiceloop.settings', JSON.stringify({processing: false}))"
    )
    yield found
    browser.close()
    assert found.complaints == []


def test_a_question_is_answered_interrupted_and_asked_again_after_a_restart(
    watched: Watched, tmp_path: Path
) -> None:
    page, port = watched.page, free_port()
    transcript = page.locator("#transcript")
    with serving(tmp_path, port=port):
        page.goto(f"http://localhost:{port}/")
        page.get_by_role("button", name="Start talking").click()
        expect(transcript).to_contain_text(QUESTION)
        expect(transcript).to_contain_text("not heard from")
        expect(transcript.locator(".unheard").first).to_be_visible()
        # The second answer is played to its end.
        watched.until(lambda: watched.responses == 2 and watched.unplayed_ms() < 1)
        first, second = watched.audio
        assert watched.played[first] < len(watched.audio[first]) / 2 / RATE * 1000
        wav = tmp_path / "answer.wav"
        sf.write(wav, np.frombuffer(bytes(watched.audio[second]), "<i2"), RATE)
    expect(page.locator("body")).to_contain_text("Try now")
    with serving(tmp_path, port=port):
        page.get_by_label("Type instead").fill("What is the capital of Norway?")
        expect(page.locator("body")).not_to_contain_text("Not connected")
        page.keyboard.press("Enter")
        expect(transcript).to_contain_text("The capital of Norway is Oslo.")
    whole = tmp_path / "whole.wav"
    assert main(["say", SKY, "--out", str(whole)]) == 0
    assert sf.info(wav).duration == pytest.approx(sf.info(whole).duration, rel=0.1)


def ask(page: Page, question: str) -> None:
    page.get_by_label("Type instead").fill(question)
    page.keyboard.press("Enter")


def cut_off(page: Page) -> str:
    """What was heard of the newest reply, whose rest is grey."""
    reply = page.locator(".entry.assistant .said").last
    expect(reply).to_contain_text("not heard from")
    heard, _, rest = reply.inner_text().partition("not heard from")
    unheard = reply.locator(".unheard").inner_text()
    assert rest.endswith(unheard)
    # On a busy machine not all of it has been written.
    assert SKY.startswith(" ".join(f"{heard} {unheard}".split()))
    assert 0 < len(heard.split()) < len(SKY.split())
    return " ".join(heard.split())


def told(watched: Watched, kind: str) -> list[tuple[str, str]]:
    """Role and words of the messages in events of a kind, each once."""
    found: dict[str, tuple[str, str]] = {}
    for event in watched.events:
        item = event.get("item", {})
        if event["type"] == kind and item.get("type") == "message":
            part = item["content"][0]
            found[item["id"]] = item["role"], part.get("text") or part.get("transcript") or ""
    return list(found.values())


@pytest.mark.parametrize("restart", [False, True], ids=["reload", "restart"])
def test_a_conversation_goes_on_where_it_broke_off_in_the_middle_of_a_reply(
    watched: Watched, tmp_path: Path, restart: bool
) -> None:
    page, port = watched.page, free_port()
    phase = page.locator("#phase")
    with ExitStack() as servers:
        server = servers.enter_context(serving(tmp_path, port=port))
        page.goto(f"{server.page}/")
        expect(phase).to_have_text("Microphone off")
        ask(page, "What is 7 times 8?")
        expect(page.locator("#transcript")).to_contain_text("56")
        expect(phase).to_have_text("Microphone off")
        ask(page, QUESTION)
        expect(phase).to_have_text("Speaking")
        watched.until(lambda: watched.played_ms() > 2500)
        if restart:
            servers.close()  # it is killed
            cut_off(page)
            servers.enter_context(serving(tmp_path, port=port))
        watched.events.clear()
        if not restart:
            page.reload()
        # The model knows what the page shows, whoever has told whom.
        kind = "conversation.item.create" if restart else "conversation.item.done"
        watched.until(lambda: len(told(watched, kind)) == 4)
        heard = cut_off(page)
        *before, last = told(watched, kind)
        assert [words for _, words in before][::2] == ["What is 7 times 8?", QUESTION]
        assert last == ("assistant", heard)
        note = page.locator(".entry.note")
        expect(note).to_have_count(1 if restart else 0)
        ask(page, "What is the capital of Norway?")
        answer = "The capital of Norway is Oslo."
        expect(page.locator("#transcript")).to_contain_text(answer)
        expect(page.locator(".entry.user")).to_have_count(3)


def test_of_four_tabs_each_has_its_place_and_whoever_closes_one_makes_room(
    playwright: Playwright, tmp_path: Path
) -> None:
    with serving(tmp_path) as server, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        stack.callback(browser.close)
        context = browser.new_context()

        def tab() -> Page:
            page = context.new_page()
            page.goto(f"{server.page}/")
            return page

        def is_in(page: Page) -> None:
            expect(page.locator("#phase")).to_have_text("Microphone off")

        first = tab()
        is_in(first)
        for _ in range(3):  # each leaves a session behind, which waits
            gone = tab()
            is_in(gone)
            gone.close()
        first.reload()
        tabs = [first, tab(), tab(), tab()]
        for page in tabs:
            is_in(page)
        fifth = tab()
        expect(fifth.locator("#notice")).to_contain_text("All places are taken")
        tabs[2].close()
        is_in(fifth)
        for page in (first, fifth):
            ask(page, "What is 7 times 8?")
            expect(page.locator("#transcript")).to_contain_text("56")


def test_a_voice_is_heard_before_it_is_chosen(watched: Watched, tmp_path: Path) -> None:
    page, port = watched.page, free_port()
    with serving(tmp_path, port=port):
        page.goto(f"http://localhost:{port}/")
        expect(page.locator("#models")).to_contain_text("whisper starter, llm starter")
        expect(page.locator("#welcome")).to_contain_text("answers small questions only")
        page.get_by_role("button", name="Settings").click()
        dialog = page.get_by_role("dialog", name="Settings")
        told, listen = dialog.get_by_role("status"), dialog.get_by_role("button", name="Listen")
        told.evaluate(
            "node => { window.told = []; new MutationObserver(() => window.told.push("
            "node.textContent)).observe(node, {childList: true}) }"
        )
        sizes = list[int]()
        for voice in ("", "de"):
            dialog.get_by_label("Voice").select_option(voice)
            with page.expect_response("**/v1/voices/*") as answered:
                listen.click()
            assert answered.value.status == 200
            sizes.append(len(answered.value.body()))
            expect(told).to_have_text("Playing …")
            expect(told).to_be_empty()
        assert sizes[0] != sizes[1]
        assert [text for text in page.evaluate("told") if text] == ["Loading …", "Playing …"] * 2
        # Too much at once is said as the server says it.
        page.route("**/v1/voices/*", lambda route: route.fulfill(status=503, body="try again"))
        listen.click()
        expect(told).to_have_text("It cannot be heard now: try again")
        page.unroute("**/v1/voices/*")
    listen.click()
    expect(told).to_have_text("The server does not answer.")
    watched.complaints[:] = [one for one in watched.complaints if "Failed to load" not in one]
