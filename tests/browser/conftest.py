"""A real browser with a scripted microphone, in front of a scripted server."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.browser.standin import PATIENCE_S, StandIn, standing_in
from tests.conftest import lacking

HERE = Path(__file__).parent
HUM = (0.01 * np.sin(np.arange(48_000) * 2 * np.pi * 100 / 48_000)).astype(np.float32)
"""A second at 48 kHz of what the microphone hears where nothing else is asked for."""
EXPECTED = re.compile(
    r"WebSocket connection to .* failed: *($|.*ERR_CONNECTION_REFUSED)"
    # It asks for the page's icon when all else has been loaded.
    r"|(WebSocket connection to .* failed|Failed to load resource): .*\b(401|403|503)\b"
    # It asked why it was not let in, and by then it would have been.
    r"|Failed to load resource: .*\b426\b"
    r"|WebSocket connection to .* failed: HTTP Authentication failed"
    r"|Failed to load resource: net::ERR_(CONNECTION_(REFUSED|RESET|CLOSED)|EMPTY_RESPONSE)"
)
"""What a browser prints where a server is gone, or lets nobody in."""

expect.set_options(timeout=PATIENCE_S * 1000)


def chromium() -> str:
    """The path of the browser: $VOICELOOP_CHROMIUM, or the first of the usual names."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("VOICELOOP_CHROMIUM") or next(filter(None, map(shutil.which, names)), "")
    if not found:
        lacking("no Chromium is installed; name one in VOICELOOP_CHROMIUM")
    return found


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    # Not for longer: it keeps an event loop running, and other tests want to run their own.
    with sync_playwright() as started:
        yield started


@dataclass
class Visit:
    """A page that is open, and what went wrong in it."""

    page: Page
    context: BrowserContext
    requests: list[str]
    complaints: list[str] = field(default_factory=list)

    def phase(self, word: str) -> None:
        """Wait until the page says that it is doing this."""
        self.page.get_by_text(word, exact=True).and_(self.page.locator("#phase")).wait_for()

    def talk(self) -> None:
        """Start the microphone."""
        self.page.get_by_role("button", name="Start talking").click()
        self.phase("Listening")

    def recorded(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """What sounded, without silent blocks: samples, and the frame at which each was played."""
        blocks = self.page.evaluate("tap.blocks.map(({frame, pcm}) => [frame, [...pcm]])")
        frames = [np.arange(frame, frame + len(pcm)) for frame, pcm in blocks]
        pcm = [np.array(pcm, np.float32) for _, pcm in blocks]
        return (
            np.concatenate(pcm or [np.zeros(0, np.float32)]),
            np.concatenate(frames or [np.zeros(0, np.int64)]),
        )

    def captured(self) -> tuple[npt.NDArray[np.float32], int]:
        """What the browser got from the microphone, and its rate in Hertz."""
        blocks = self.page.evaluate("tap.microphone.map(({pcm}) => [...pcm])")
        return np.array(blocks, np.float32).ravel(), self.page.evaluate("tap.rate")

    def sounds(self, seconds: float) -> None:
        """Wait until that much has been heard."""
        self.until(f"tap.blocks.length * 128 >= {round(seconds * 24_000)}")

    def until(self, expression: str) -> None:
        """Wait for something to be true in the page."""
        # Playwright's own wait would use eval, which the page's policy forbids.
        deadline = time.monotonic() + PATIENCE_S
        while not self.page.evaluate(expression):
            if time.monotonic() > deadline:
                pytest.fail(f"it never came to be: {expression}")
            self.page.wait_for_timeout(25)


Open = Callable[..., Visit]


def launched(
    playwright: Playwright,
    folder: Path,
    microphone: npt.NDArray[np.float32],
    rate: int,
    *,
    device: bool = True,
    flags: tuple[str, ...] = (),
) -> Browser:
    """A browser whose `device` hears `microphone`, again and again."""
    wav = folder / f"microphone-{len(list(folder.iterdir()))}.wav"
    soundfile.write(wav, microphone, rate, "PCM_16")
    fake = ["--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={wav}"]
    return playwright.chromium.launch(
        executable_path=chromium(),
        args=["--no-sandbox", *(fake if device else []), *flags],
    )


@pytest.fixture(scope="module")
def humming(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that hears a hum, for all pages that need nothing else: to begin one is dear."""
    with launched(playwright, tmp_path_factory.mktemp("hum"), HUM, 48_000) as browser:
        yield browser


@pytest.fixture
def server() -> Iterator[StandIn]:
    with standing_in(tap_worklet=HERE / "tap-worklet.js") as started:
        yield started


@pytest.fixture
def visit(
    playwright: Playwright, humming: Browser, server: StandIn, tmp_path: Path
) -> Iterator[Open]:
    """Call it to open the page; at the end nothing may have gone wrong in it."""
    browsers: list[Browser] = []
    visits: list[Visit] = []

    def open_page(
        *,
        microphone: npt.NDArray[np.float32] | None = None,
        rate: int = 48_000,
        device: bool = True,
        allowed: bool = True,
        url: str = "",
        script: str = "",
        flags: tuple[str, ...] = (),
        **options: object,
    ) -> Visit:
        """`microphone` is what it hears, at `rate`, again and again; a hum without it."""
        if microphone is None and device and not flags:
            browser = humming
        else:
            hears = HUM if microphone is None else microphone
            browser = launched(playwright, tmp_path, hears, rate, device=device, flags=flags)
            browsers.append(browser)
        context = browser.new_context(**options)  # pyright: ignore[reportArgumentType]
        if allowed:
            context.grant_permissions(["microphone"])
        page = context.new_page()
        page.add_init_script(
            "localStorage.setItem('voiceloop.settings', localStorage.getItem('voiceloop.settings')"
            " ?? JSON.stringify({processing: false}))"
        )
        page.add_init_script(path=HERE / "tap.js")
        if script:
            page.add_init_script(script)
        opened = Visit(page, context, [])
        page.on("request", lambda request: opened.requests.append(request.url))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                opened.complaints.append(message.text)
                if message.type in ("error", "warning") and not EXPECTED.search(message.text)
                else None
            ),
        )
        visits.append(opened)
        page.goto(url or server.url)
        return opened

    yield open_page
    for opened in visits:
        opened.context.close()
    for browser in browsers:
        browser.close()
    for opened in visits:
        assert opened.complaints == []
        strangers = [url for url in opened.requests if f":{server.port}/" not in url]
        assert strangers == []
