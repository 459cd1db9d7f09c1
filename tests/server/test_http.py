"""The files of web/: those and no others, under their names, with all headers of every reply."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

from voiceloop.errors import ConfigError
from voiceloop.server.access.auth import RefusalReason
from voiceloop.server.routes import (
    INDEX,
    TYPES,
    Asset,
    Site,
    line,
    load,
    refusal,
)

pytestmark = pytest.mark.pure

HOST = "localhost:8765"
FILES = {
    "/index.html": Asset(b"<!doctype html>", TYPES[".html"], '"a1"'),
    "/app.js": Asset(b"export {}", TYPES[".js"], '"b2"'),
    "/lib/level.js": Asset(b"", TYPES[".js"], '"c3"'),
}
SITE = Site(FILES)
PATHS = ["/", *FILES]

EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=(), display-capture=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def get(target: str, *headers: tuple[str, str], method: str = "GET") -> Response:
    return SITE.answer(method, target, headers, HOST)


def header(reply: Response, name: str) -> str | None:
    found = reply.headers.getlist(name)
    assert len(found) <= 1
    return found[0] if found else None


# --- which files --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", ["", "?", "?dsp=0", "?/../../etc/passwd"])
def test_a_file_is_served_under_its_name(path: str, query: str) -> None:
    reply, asset = get(path + query), FILES[INDEX if path == "/" else path]
    assert (reply.status_code, reply.body) == (200, asset.body)
    assert header(reply, "Content-Type") == asset.kind
    assert header(reply, "Content-Length") == str(len(asset.body))
    assert header(reply, "ETag") == asset.etag
    assert set(SITE.assets) == set(PATHS)


@pytest.mark.parametrize(
    "target",
    [
        "", "*", "?", "index.html", "app.js", "//", "//app.js", "/./app.js", "/lib/../app.js",
        "/lib//level.js", "/lib", "/lib/", "/lib/.", "/../app.js", "/..", "/../../etc/passwd",
        "/..%2f..%2fetc/passwd", "/%2e%2e/app.js", "/%252e%252e%252fapp.js", "/%2fapp.js",
        "/..\\app.js", "/lib\\level.js", "/lib%5clevel.js", "/app.js\0", "/app.js%00",
        "/app.js%00.html", "/app.js\0.html", "/etc/passwd", "/APP.JS", "/Index.html", "/app.js/",
        "/app.js.", "/app.js ", "/app.js%20", "/app.js#x", "/app.js;x", "/app.js::$DATA",
        "/app%2ejs", "http://localhost:8765/app.js", "/\u0430pp.js", "/app.js\r\nX: y",
        "/.git/config", "/static.py", "/favicon.ico", "/" + "a" * 8765, "/" + "../" * 2000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_every_other_name_is_not_found(target: str, method: str) -> None:
    reply = get(target, method=method)
    assert (reply.status_code, reply.body) == (404, b"there is nothing under that name\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "", "G\0"])
@pytest.mark.parametrize("target", ["/", "/absent"])
def test_files_can_only_be_read(method: str, target: str) -> None:
    reply = get(target, method=method)
    assert reply.status_code == 405
    assert header(reply, "Allow") == "GET, HEAD"


@given(st.sampled_from([*PATHS, "/absent"]), st.sampled_from(['"a1"', '"b2"', '"x"', "*", ""]))
def test_head_says_what_get_would(target: str, tag: str) -> None:
    full = get(target, ("If-None-Match", tag))
    head = get(target, ("If-None-Match", tag), method="HEAD")
    assert (head.status_code, head.headers) == (full.status_code, full.headers)


# --- what a browser has already -----------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ['"b2"', 'W/"b2"', '"x", "b2"', '"x","b2" , "y"', "*", " * ", '"a,b", W/"b2"']
)
def test_what_the_browser_has_is_not_sent_again(value: str) -> None:
    reply = get("/app.js", ("iF-nOnE-mAtCh", value))
    assert (reply.status_code, reply.body) == (304, b"")
    # RFC 9110, 15.4.5: the headers of the 200 that it stands for; the length may be left out.
    assert {"content-length": "9", **reply.headers} == dict(get("/app.js").headers)


# --- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        get("/"),
        get("/absent"),
        get("/", method="HEAD"),
        get("/", method="POST"),
        get("/", ("If-None-Match", "*")),
        line(503, "busy"),
        *(refusal(reason) for reason in RefusalReason),
    ],
    ids=lambda reply: str(reply.status_code),
)
def test_every_reply_is_locked_up(reply: Response) -> None:
    assert {name: header(reply, name) for name in EVERYWHERE} == EVERYWHERE
    csp = header(reply, "Content-Security-Policy") or ""
    rules = dict(rule.split(" ", 1) for rule in csp.split("; "))
    sockets = f" ws://{HOST} wss://{HOST}" if reply.status_code in (200, 304) else ""
    assert rules == {
        **dict.fromkeys(["default-src", "base-uri", "form-action", "frame-ancestors"], "'none'"),
        **dict.fromkeys(["script-src", "style-src", "img-src", "media-src"], "'self'"),
        **dict.fromkeys(["worker-src", "font-src"], "'self'"),
        "connect-src": f"'self'{sockets}",
    }
    assert not [value for value in reply.headers.values() if "unsafe" in value or "\n" in value]


@pytest.mark.parametrize("reason", RefusalReason)
def test_a_refusal_is_a_line_that_says_why(reason: RefusalReason) -> None:
    reply = refusal(reason)
    assert reply.status_code == reason.status
    assert bytes(reply.body).decode() == f"{reason}: {reason.hint}\n"
    assert header(reply, "Content-Type") == "text/plain; charset=utf-8"
    challenge = "Bearer" if reply.status_code == 401 else None
    assert header(reply, "WWW-Authenticate") == challenge


# --- reading the folder -------------------------------------------------------------------------


def write(folder: Path, name: str, content: bytes = b"x") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def complaint(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder)
    assert caught.value.hint
    return caught.value.message


def test_all_files_of_the_folder_are_served(tmp_path: Path) -> None:
    for suffix in TYPES:
        write(tmp_path, f"index{suffix}", suffix.encode())
    write(tmp_path, "lib/deep/Level-1_b.min.js", b"deep")
    site = load(tmp_path)
    served = {"/", "/lib/deep/Level-1_b.min.js", *(f"/index{name}" for name in TYPES)}
    assert set(site.assets) == served
    for suffix, kind in TYPES.items():
        reply = site.answer("GET", f"/index{suffix}", [], HOST)
        assert (reply.body, header(reply, "Content-Type")) == (suffix.encode(), kind)
    assert site.answer("GET", "/", [], HOST).body == b".html"


def test_what_is_served_is_what_was_there_at_the_start(tmp_path: Path) -> None:
    path = write(tmp_path, "index.html", b"one")
    site = load(tmp_path)
    path.unlink()
    write(tmp_path, "late.js")
    assert site.answer("GET", "/", [], HOST).body == b"one"
    assert site.answer("GET", "/late.js", [], HOST).status_code == 404


def test_a_folder_without_a_page_is_a_broken_installation(tmp_path: Path) -> None:
    assert complaint(tmp_path) == f"no web page in {tmp_path}"
    assert complaint(tmp_path / "absent") == f"no web page in {tmp_path / 'absent'}"


@pytest.mark.parametrize("name", ["app.py", "app", "app.JS", "app.html~", "app.js.map"])
def test_a_file_of_an_unknown_type_is_not_served(tmp_path: Path, name: str) -> None:
    write(tmp_path, "index.html")
    path = write(tmp_path, name)
    assert complaint(tmp_path) in (
        f"{path} is of no known type",
        f"{path} cannot be served under that name",
    )
