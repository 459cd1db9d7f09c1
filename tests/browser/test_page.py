"""The page by itself: it loads within its policy, and is usable by keyboard and screen reader."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Open
from tests.browser.standin import StandIn

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
    hearing = {"turn_detection": {"type": "semantic_vad"}, "transcription": {}}
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
    page.get_by_text("The server says").locator("visible=true").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for button in page.get_by_role("button").all():
        box = button.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(visit: Open) -> None:
    page = visit(viewport={"width": 360, "height": 640}).page
    names = set[str]()
    for _ in range(8):
        page.keyboard.press("Tab")
        names.add(
            page.evaluate(
                "document.activeElement.labels?.[0]?.innerText || document.activeElement.innerText"
            )
        )
    wanted = {"Latency", "Settings", "Start talking", "Type instead of talking", "Send"}
    assert wanted <= {name.strip() for name in names}
