"""Writes docs/images/*.png: a conversation as the page shows it.

Nothing is staged: `voiceloop serve` answers, and the browser's microphone plays a recording of
espeak-ng, in which a question interrupts an answer. Words and milliseconds are those of the machine
that takes the pictures, which should be idle.

`python -m tools.screenshots --preset laptop` needs Playwright and a Chromium (VOICELOOP_CHROMIUM
names one). The options are those of `voiceloop serve`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile
from playwright.sync_api import Page, Playwright, ViewportSize, expect, sync_playwright

from models.train.questions import spoken
from models.train.voices import Voice
from tests.browser.conftest import chromium
from tests.server.serving import serving
from voiceloop.audio.frames import SPEECH_RATE

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDE: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}
LARGEST = 200_000
PATIENCE_MS = 60_000

SAID = (
    (1.0, "What is the capital of Norway?"),
    (8.0, "Why is the sky blue?"),
    (13.0, "What is the capital of France?"),
)
"""Seconds of the recording, and the question asked there. The last interrupts an answer, which must
have begun by then."""


@dataclass(frozen=True, slots=True)
class BrowserRun:
    """One conversation of the browser, and the scenes that become pictures."""

    scheme: Literal["light", "dark"]
    size: ViewportSize
    suffix: str
    scenes: tuple[str, ...]


RUNS = (
    BrowserRun("light", WIDE, "", ("idle", "talking", "interrupted")),
    BrowserRun("dark", WIDE, "", ("idle", "talking", "interrupted")),
    BrowserRun("light", PHONE, "-phone", ("interrupted",)),
    BrowserRun("dark", PHONE, "-phone", ("talking",)),
)


def recording(path: Path) -> None:
    """Write the sound of the microphone: the questions over a faint background noise."""
    room = np.random.default_rng(0).normal(0, 3e-4, 40 * SPEECH_RATE).astype(np.float32)
    for second, text in SAID:
        said, at = spoken(text, Voice("espeak", "en-us")), round(second * SPEECH_RATE)
        room[at : at + len(said)] += said
    soundfile.write(path, room, SPEECH_RATE, "PCM_16")


def converse(page: Page, scene: str) -> None:
    """Wait until the conversation has reached a scene. Scenes are called in their order."""
    transcript = page.locator("#transcript")
    phase = page.locator("#phase")
    if scene == "idle":
        expect(phase).to_have_text("Microphone off")
        return
    start = page.get_by_role("button", name="Start talking")
    if start.is_visible():
        start.click()
        page.mouse.move(0, 0)
    if scene == "talking":
        # The second answer sounds, and some of it has been heard.
        expect(transcript.locator("li")).to_have_count(4)
        expect(phase).to_have_text("Speaking")
        page.wait_for_timeout(1500)
    else:
        expect(transcript).to_contain_text("not heard from")
        expect(transcript.locator("li")).to_have_count(6)
        expect(phase).to_have_text("Speaking")
        page.wait_for_timeout(500)


def take(playwright: Playwright, url: str, microphone: Path, run: BrowserRun) -> None:
    """Hold one conversation, and take its pictures."""
    flags = [
        "--no-sandbox",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={microphone}%noloop",
    ]
    browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
    context = browser.new_context(
        viewport=run.size,
        color_scheme=run.scheme,
        device_scale_factor=1.5,
        is_mobile=run.size == PHONE,
        has_touch=run.size == PHONE,
    )
    context.grant_permissions(["microphone"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    # The recording has neither echo nor noise to be removed.
    page.add_init_script(
        "localStorage.setItem('voiceloop.settings', JSON.stringify({processing: false}))"
    )
    page.goto(url)
    for scene in run.scenes:
        converse(page, scene)
        path = FOLDER / f"{scene}-{run.scheme}{run.suffix}.png"
        page.screenshot(path=path, animations="disabled")
        assert path.stat().st_size <= LARGEST, f"{path} has {path.stat().st_size} bytes"
    browser.close()


def main(options: Sequence[str]) -> None:
    """Take every picture of a server with `options`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        microphone = Path(folder) / "microphone.wav"
        recording(microphone)
        with serving(Path(folder), *options) as server:
            for run in RUNS:
                take(playwright, server.page, microphone, run)


if __name__ == "__main__":
    main(sys.argv[1:])
