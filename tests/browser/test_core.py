"""The logic of the page that needs no page: its tests run in Node, and it stays that way."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import playwright
import pytest

from voiceloop.bundled import bundled

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
