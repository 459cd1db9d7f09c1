"""The page in front of the real server and the starter models: nothing between them is scripted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from playwright.sync_api import Page, Playwright, WebSocket, expect

from models.train.questions import spoken
from models.train.voices import Voice
from tests.browser.conftest import EXPECTED, chromium
from tests.server.serving import RATE, free_port, serving
from voiceloop.bench.scoring import word_errors
from voiceloop.cli import main

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
    """Asks, and asks again in the middle of the answer."""
    said = spoken(QUESTION, Voice("espeak", "en-us"))
    room = np.random.default_rng(0).normal(0, 3e-4, 20 * RATE_IN).astype(np.float32)
    for at in (RATE_IN, round(5.5 * RATE_IN)):
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

    def _watch(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._received)
        socket.on("framesent", self._sent)

    def _received(self, payload: str | bytes) -> None:
        if isinstance(payload, bytes):
            self.audio.setdefault(payload[:24].decode(), bytearray()).extend(payload[HEADER:])
        else:
            self.responses += json.loads(payload)["type"] == "response.done"

    def _sent(self, payload: str | bytes) -> None:
        if isinstance(payload, str) and '"voiceloop.played"' in payload:
            event = json.loads(payload)
            self.played[event["item_id"]] = event["audio_ms"]


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
    page.set_default_timeout(30_000)
    found = Watched(page)
    page.add_init_script(
        "localStorage.setItem('voiceloop.settings', JSON.stringify({processing: false}))"
    )
    yield found
    browser.close()
    assert found.complaints == []


def test_a_question_is_answered_interrupted_and_asked_again_after_a_restart(
    watched: Watched, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, port = watched.page, free_port()
    transcript = page.locator("#transcript")
    with serving(tmp_path, port=port):
        page.goto(f"http://localhost:{port}/")
        page.get_by_role("button", name="Start talking").click()
        expect(transcript).to_contain_text(QUESTION)
        expect(transcript).to_contain_text("interrupted at")
        expect(transcript.locator("s, del, .unheard").first).to_be_visible()
        for _ in range(150):
            page.wait_for_timeout(200)
            if watched.responses == 2 and watched.unplayed_ms() < 1:
                break
        assert watched.unplayed_ms() < 1, "the second answer was played to its end"
        first, second = watched.audio
        assert watched.played[first] < len(watched.audio[first]) / 2 / RATE * 1000
        wav = tmp_path / "answer.wav"
        sf.write(wav, np.frombuffer(bytes(watched.audio[second]), "<i2"), RATE)
    expect(page.locator("body")).to_contain_text("Try now")
    with serving(tmp_path, port=port):
        page.get_by_label("Type instead").fill("What is the capital of Norway?")
        expect(page.locator("body")).not_to_contain_text("Not connected", timeout=30_000)
        page.keyboard.press("Enter")
        expect(transcript).to_contain_text("The capital of Norway is Oslo.")
    capsys.readouterr()
    # The starter knows questions; this is a whole answer.
    assert main(["transcribe", "--json", "--asr.engine", "sphinx", str(wav)]) == 0
    heard = json.loads(capsys.readouterr().out)["text"]
    errors = word_errors(SKY, heard)
    assert errors.errors <= 0.15 * errors.words, heard


def test_a_voice_is_heard_before_it_is_chosen(watched: Watched, tmp_path: Path) -> None:
    page, port = watched.page, free_port()
    with serving(tmp_path, port=port):
        page.goto(f"http://localhost:{port}/")
        expect(page.locator("#welcome")).to_contain_text("Running: whisper starter, llm starter")
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
        expect(told).to_have_text("The server says: try again")
        page.unroute("**/v1/voices/*")
    listen.click()
    expect(told).to_have_text("The server does not answer.")
    watched.complaints[:] = [one for one in watched.complaints if "Failed to load" not in one]
