"""A service below a path of somebody else's application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.api.test_talk import opened
from voiceloop.errors import ConfigError, VoiceloopError

pytestmark = pytest.mark.real


@pytest.fixture
def anyio_backend() -> str:
    """The application is asked from another thread."""
    return "asyncio"


def site() -> Starlette:
    return Starlette(routes=[Route("/", lambda request: PlainTextResponse("home"))])


async def statuses(
    app: Starlette, *paths: str, host: str = "localhost:8000", peer: str = "127.0.0.1"
) -> list[int]:
    """Return the status of the answer at each path to a client at the address `peer`."""

    def ask() -> list[int]:
        client = TestClient(
            app, base_url=f"http://{host}", follow_redirects=False, client=(peer, 50_000)
        )
        return [client.get(path).status_code for path in paths]

    return await anyio.to_thread.run_sync(ask)


async def test_the_paths_below_are_the_services_and_the_others_the_applications() -> None:
    app = site()
    async with opened() as (loop, _):
        loop.mount(app, "/voice")
        assert await statuses(app, "/voice/healthz") == [200]  # at once
        paths = ("/", "/voice", "/voice/", "/voice/v1/realtime", "/voice/nothing", "/nothing")
        assert await statuses(app, *paths) == [200, 307, 200, 426, 404, 404]
        assert await statuses(app, "/", "/voice/", host="evil.example") == [200, 421]
    assert await statuses(app, "/", "/voice/readyz") == [200, 503]  # the models are gone


async def test_it_has_the_access_rules_of_the_server(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("k" * 32)
    keys.chmod(0o600)
    app = site()
    async with opened() as (loop, _):
        loop.mount(app, "/local")
        pages = ("/local/", "/local/metrics", "/local/v1/realtime")
        assert await statuses(app, *pages) == [200, 200, 426]
        assert await statuses(app, *pages, peer="192.0.2.7") == [403, 403, 403]
        loop.mount(app, "/a", port=9000, allow_host=["voice.example"], api_key_file=keys)
        assert await statuses(app, "/a/v1/realtime", host="voice.example:9000") == [401]
        assert await statuses(app, "/a/", host="localhost:9000", peer="192.0.2.7") == [200]
        assert await statuses(app, "/a/", host="localhost:8000") == [421]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"path": "voice"}, "does not begin with a slash"),
        ({"path": "/twice"}, "mounted already"),
        ({"host": "0.0.0.0"}, "no API key"),
        ({"behind_proxy": True}, "no API key"),
        ({"allow_host": ["a b"]}, "not the name of a host"),
    ],
)
async def test_what_cannot_be_mounted_is_told(options: dict[str, Any], told: str) -> None:
    app = site()
    async with opened() as (loop, _):
        loop.mount(app, "/twice")
        with pytest.raises(ConfigError, match=told):
            loop.mount(app, **options)
        assert len(app.routes) == 2
    with pytest.raises(VoiceloopError, match="closed"):
        loop.mount(app, "/late")
