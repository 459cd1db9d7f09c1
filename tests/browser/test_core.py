"""The logic of the page that needs no page: its tests run in Node, and it stays that way."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import playwright
import pytest

from voiceloop.bundled import bundled
from voiceloop.wire.client_events import SessionUpdate
from voiceloop.wire.parsing import parse
from voiceloop.wire.settings import SessionSettings

pytestmark = pytest.mark.browser

WEB = bundled("web")
CORE = sorted(path.name for path in (WEB / "core").glob("*.js"))
SUITES = sorted((Path(__file__).parent / "core").glob("*.test.mjs"))
PAGE = re.compile(
    r"\b(document|window|navigator|localStorage|sessionStorage|performance|WebSocket|AudioContext"
    r"|setTimeout|setInterval|Date|fetch|Math\.random)\b"
)


def node() -> str:
    """The Node of this machine, or the one that Playwright brings along."""
    own = Path(playwright.__file__).parent / "driver" / "node"
    return shutil.which("node") or str(own)


def code(path: Path) -> str:
    """A script without its comments."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_logic(suite: Path) -> None:
    done = subprocess.run([node(), "--test", suite], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


SENT = """
import { retold } from '%s/retelling.js';
import * as wire from '%s/wire.js';
const settings = ['semantic_vad', 'server_vad', 'none'].map((turns) => ({
  voice: 'en', speed: 1.25, language: 'en', instructions: 'Be brief.', turns,
}));
console.log(JSON.stringify([
  ...settings.map((one) => wire.sessionUpdate(one, { voice: '', instructions: '', voices: [] })),
  wire.sessionUpdate({ voice: '', speed: 1, language: '', instructions: '', turns: 'semantic_vad' },
    { voice: 'de', instructions: 'Be kind.', voices: [] }),
  wire.userMessage('item_1', 'Hello.'),
  wire.played('item_2', 36001),
  wire.truncate('item_2', 36001),
  { type: 'voiceloop.resume', token: 'x' },
  ...retold([
    { id: 'item_3', role: 'user', text: 'Hello.', heard: null },
    { id: 'item_4', role: 'assistant', text: 'Hello to you.', heard: 'Hello' },
  ]),
  ...['response.create', 'response.cancel', 'input_audio_buffer.clear', 'input_audio_buffer.commit']
    .map((type) => ({ type })),
]));
"""


def test_the_server_understands_what_the_page_sends() -> None:
    core = (WEB / "core").as_uri()
    script = SENT % (core, core)
    run = [node(), "--input-type=module", "--eval", script]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    settings = SessionSettings()
    for sent in json.loads(done.stdout):
        event = parse(json.dumps(sent))
        assert type(event).__struct_config__.tag == sent["type"]
        if isinstance(event, SessionUpdate):
            settings = settings.updated(event.session)
            assert settings.audio.input.transcription is not None
            assert settings.voiceloop.binary_audio and settings.voiceloop.resume


@pytest.mark.parametrize("name", CORE)
def test_logic_knows_neither_page_nor_clock(name: str) -> None:
    script = code(WEB / "core" / name)
    assert not PAGE.findall(script)
    assert all(path.startswith("./") for path in re.findall(r"from '([^']*)'", script))


@pytest.mark.parametrize("path", sorted(WEB.rglob("*.js")), ids=lambda path: path.name)
def test_no_script_makes_html_of_text(path: Path) -> None:
    script = code(path)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)
    assert path.read_text(encoding="utf-8").startswith("// @ts-check\n")
    assert len(script.splitlines()) <= 400


def test_the_page_has_neither_script_nor_style_of_its_own_nor_a_stranger() -> None:
    html = (WEB / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r"<style|\sstyle=|\son\w+=|javascript:|data:|https?://", html)
    css = (WEB / "style.css").read_text(encoding="utf-8")
    assert not re.findall(r"@import|url\(", css)
