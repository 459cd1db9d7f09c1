"""examples/own_page.html in a browser hears a question, shows both sides and plays the answer."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import DEVNULL, Popen
from urllib.request import urlopen

import numpy as np
import pytest
from playwright.sync_api import Playwright, expect

from tests.api.test_examples import EXAMPLES
from tests.browser.conftest import launched
from tests.server.serving import free_port, serving, spoken_question, until

pytestmark = pytest.mark.browser

COUNTS = """
window.played = 0;
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (at) {
  window.played += this.buffer.duration;
  start.call(this, at);
};
"""


def answers(url: str) -> bool:
    try:
        with urlopen(url):
            return True
    except OSError:
        return False


def test_it_talks(playwright: Playwright, tmp_path: Path) -> None:
    port, page_port = free_port(), free_port()
    text = (EXAMPLES / "own_page.html").read_text()
    assert text.count("localhost:8765") == 1
    (tmp_path / "own_page.html").write_text(text.replace("localhost:8765", f"localhost:{port}"))
    site = f"http://localhost:{page_port}"
    command = [sys.executable, "-m", "http.server", str(page_port), "--bind", "127.0.0.1"]
    said = spoken_question("Why is the sky blue?")
    room = np.random.default_rng(0).normal(0, 3e-4, 30 * 16_000).astype(np.float32)
    room[16_000 : 16_000 + len(said)] += said
    folder = tmp_path / "microphone"
    folder.mkdir()
    with (
        serving(tmp_path, "--allow-origin", site, port=port),
        Popen(command, cwd=tmp_path, stdout=DEVNULL, stderr=DEVNULL) as pages,
        launched(playwright, folder, room, 16_000) as browser,
    ):
        try:
            until(lambda: answers(f"{site}/own_page.html"))
            page = browser.new_context(permissions=["microphone"]).new_page()
            complaints = list[str]()
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.add_init_script(COUNTS)
            page.goto(f"{site}/own_page.html")
            page.get_by_role("button", name="Talk").click()
            shown = page.locator("#said")
            expect(shown).to_contain_text("you: Why is the sky blue?")
            expect(shown).to_contain_text("voiceloop: Sunlight is a mix")
            assert page.evaluate("played") > 3 and complaints == []
        finally:
            pages.kill()
