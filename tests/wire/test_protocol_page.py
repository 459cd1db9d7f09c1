"""The page of the protocol: it is that of the types, and leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.protocol import SERVER_EVENTS, page
from voiceloop.settings.schema import hints_of
from voiceloop.wire.client_events import CLIENT_EVENTS
from voiceloop.wire.parsing import UNSUPPORTED

pytestmark = pytest.mark.pure


def test_the_page_of_the_protocol_is_up_to_date() -> None:
    shown = Path(__file__, "../../../docs/protocol.md").resolve().read_text(encoding="utf-8")
    assert shown == page(), "run: make docs"


def test_the_page_has_every_event_with_every_key() -> None:
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##)", page(), re.DOTALL | re.MULTILINE))
    for name, kind in (CLIENT_EVENTS | SERVER_EVENTS).items():
        for key in set(hints_of(kind)) - {"event_id"}:
            assert f"| `{key}` |" in sections[name]
    assert all(f"- `{name}`: " in page() for name in UNSUPPORTED)


def test_every_link_of_the_page_leads_to_one_heading() -> None:
    headings = [line.lstrip("# ").lower() for line in page().splitlines() if line.startswith("#")]
    links = set(re.findall(r"\]\(#(.*?)\)", page()))
    assert links
    assert all(headings.count(link) == 1 for link in links)
