"""The page by itself: it loads within its policy, and is usable by keyboard and screen reader."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.standin import StandIn, item_id
from voiceloop.bundled import bundled

pytestmark = pytest.mark.browser


def test_it_loads_from_its_own_server_alone_and_complains_of_nothing(
    visit: Open, server: StandIn
) -> None:
    page = visit().page
    page.get_by_role("button", name="Start talking").wait_for()
    server.client().wait("session.update")
    assert page.title() == "voiceloop"


def test_it_asks_for_what_it_understands(visit: Open, server: StandIn) -> None:
    visit()
    session = server.client().wait("session.update")["session"]
    assert session["type"] == "realtime"
    hearing = {"turn_detection": {"type": "semantic_vad"}, "transcription": {"language": None}}
    assert session["audio"]["input"] == hearing
    assert session["voiceloop"] == dict.fromkeys(
        ("binary_audio", "tentative_words", "traces", "pause", "clauses", "resume"), True
    )
    assert "openai-insecure-api-key" not in str(server.client().headers)


@pytest.mark.parametrize("width", [320, 360, 768, 1440])
def test_nothing_sticks_out_at_any_width(visit: Open, server: StandIn, width: int) -> None:
    page = visit(viewport={"width": width, "height": 640}).page
    client = server.client()
    client.send("voiceloop.transcript", item_id="u1", committed="why " * 60, tentative="is")
    client.send("error", error={"message": "x" * 250, "type": "server_error"})
    page.get_by_text("That did not work").locator("visible=true").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for button in page.get_by_role("button").all():
        box = button.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(visit: Open) -> None:
    page = visit(viewport={"width": 360, "height": 640}).page
    names = set[str]()
    for _ in range(10):
        page.keyboard.press("Tab")
        names.add(
            page.evaluate(
                "document.activeElement.labels?.[0]?.innerText || document.activeElement.innerText"
            )
        )
    wanted = {"New", "Settings", "More", "Start talking", "Type instead of talking", "Send"}
    assert wanted <= {name.strip() for name in names}


@pytest.mark.parametrize("turns", ["semantic_vad", "none"])
def test_who_starts_by_keyboard_goes_on_by_keyboard(visit: Open, turns: str) -> None:
    stored = f"localStorage.setItem('voiceloop.settings', '{{\"turns\": \"{turns}\"}}')"
    page = visit(script=stored).page
    page.locator("#start").press("Enter")
    expect(page.locator("#mute" if turns == "semantic_vad" else "#hold")).to_be_focused()
    page.get_by_role("button", name="Turn off").press("Enter")
    expect(page.locator("#start")).to_be_focused()


def test_the_first_answer_that_is_measured_moves_nothing(visit: Open, server: StandIn) -> None:
    page = visit(viewport={"width": 1440, "height": 900}).page
    client = server.client()
    client.text(item_id(1), "Here it stands.", "r1")
    said = page.locator(".entry.assistant .said")
    expect(said).to_have_text("Here it stands.")
    page.wait_for_timeout(300)  # until it has arrived
    before = said.bounding_box()
    trace = {"outcome": "done", "voice_to_voice_ms": 300.0, "parts": []}
    client.send("voiceloop.trace", response_id="r1", item_id=None, trace=trace)
    expect(page.locator(".who .figure")).to_have_text("300 ms")
    assert said.bounding_box() == before


def luminance(colour: str) -> float:
    """The relative luminance of a colour such as `#17191c` (WCAG 2.1)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_borders_can_be_told_from_what_is_behind_them(scheme: int) -> None:
    css = (bundled("web") / "style.css").read_text(encoding="utf-8")
    root = re.findall(r":root \{(.*?)\n\s*\}", css, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", root))
    least = dict.fromkeys(("ink", "ink-soft", "ink-faint", "voice"), 4.5) | {"border": 3.0}
    for name, wanted in least.items():
        for behind in ("paper", "raised", "shade"):
            both = sorted(luminance(colours[one]) for one in (name, behind))
            assert (both[1] + 0.05) / (both[0] + 0.05) >= wanted, (name, behind)


WAKE_LOCK = """
window.locks = [];
const request = async (kind) => {
  const lock = { kind, released: false, async release() { lock.released = true; } };
  window.locks.push(lock);
  return lock;
};
Object.defineProperty(navigator, 'wakeLock', { value: { request } });
"""
HIDE = """(hidden) => {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_the_screen_stays_on_while_the_microphone_does(visit: Open) -> None:
    opened = visit(script=WAKE_LOCK)
    page = opened.page
    opened.phase("Microphone off")
    assert page.evaluate("locks.length") == 0
    opened.talk()
    opened.until("locks.length === 1 && locks[0].kind === 'screen' && !locks[0].released")
    page.evaluate(HIDE, True)  # by which a browser takes it back
    page.evaluate(HIDE, False)
    opened.until("locks.length === 2")
    page.get_by_role("button", name="Turn off").click()
    opened.until("locks[1].released")
    page.evaluate(HIDE, False)
    assert page.evaluate("locks.length") == 2


def pictures(page: Page, count: int) -> int:
    """How many different pictures of the figure there are in `count` frames."""
    return page.evaluate(
        """async (count) => {
          const seen = new Set();
          const canvas = document.getElementById('voice-line');
          for (let i = 0; i < count; i++) {
            await new Promise((go) => requestAnimationFrame(go));
            seen.add(canvas.toDataURL());
          }
          return seen.size;
        }""",
        count,
    )


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_figure_tells_what_goes_on_and_moves_only_for_those_who_like_it(
    visit: Open, server: StandIn, motion: str
) -> None:
    opened = visit(reduced_motion=motion)
    page, client = opened.page, server.client()
    opened.phase("Microphone off")
    page.evaluate("window.before = document.getElementById('voice-line').toDataURL()")
    redrawn = """() => {
      const [before, now] = [window.before, document.getElementById('voice-line').toDataURL()];
      window.before = now;
      return now !== before;
    }"""
    client.send("input_audio_buffer.speech_started", item_id="u1")
    opened.phase("Hearing you")
    opened.until(redrawn)
    client.send("input_audio_buffer.speech_stopped", item_id="u1")
    opened.phase("Thinking")
    opened.until(redrawn)
    moved = pictures(page, 20)
    assert moved == 1 if motion == "reduce" else moved > 5
