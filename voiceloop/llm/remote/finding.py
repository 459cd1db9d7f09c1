"""Search for language-model servers on this machine. All ports are asked at the same time, for at
most a second.

No request leaves the machine. Requests go to the loopback address, without a proxy, and redirects
are not followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING

import anyio

from voiceloop.llm.remote.servers import (
    HOST,
    PORTS,
    LocalServer,
    paths,
    read_server,
    told_apart,
)

if TYPE_CHECKING:
    import httpx2

PATIENCE_S = 1.0
"""Seconds in which a server must answer a request completely."""
MOST_BYTES = 1 << 20
"""Maximum number of bytes in an answer. A longer answer is ignored."""


async def find_servers(ports: Sequence[int] = PORTS) -> list[LocalServer]:
    """Return the servers at `ports` of this machine that have a model that can hold a
    conversation."""
    import httpx2

    answers: dict[int, dict[str, bytes]] = {port: {} for port in ports}
    async with (
        httpx2.AsyncClient(
            trust_env=False,
            verify=False,  # nothing here is encrypted, and reading certificates takes time
            follow_redirects=False,
            timeout=None,
            headers={"Accept-Encoding": "identity"},  # compressed data may be a bomb
        ) as client,
        anyio.create_task_group() as tasks,
    ):
        for port, bodies in answers.items():
            for path in paths(port):
                tasks.start_soon(_request, client, f"http://{HOST}:{port}", path, bodies)
    found = (read_server(port, bodies) for port, bodies in answers.items())
    return told_apart(server for server in found if server is not None)


def begin_search(ports: Sequence[int] = PORTS) -> Future[list[LocalServer]]:
    """Run `find_servers` on a new thread. Return a future for its result."""
    found: Future[list[LocalServer]] = Future()

    def search() -> None:
        try:
            found.set_result(anyio.run(find_servers, ports))
        except BaseException as error:  # is raised in the caller of `result`
            found.set_exception(error)

    Thread(target=search, name="voiceloop-llm-search", daemon=True).start()
    return found


async def _request(
    client: httpx2.AsyncClient, server: str, path: str, bodies: dict[str, bytes]
) -> None:
    """Request `path` from `server`, and add the answer to `bodies`. An answer is ignored if it is
    late or too long, or if its status is not 200."""
    import httpx2

    body = b""
    try:
        with anyio.fail_after(PATIENCE_S):
            async with client.stream("GET", f"{server}/{path}") as answer:
                if answer.status_code != 200:
                    return
                async for block in answer.aiter_raw():
                    body += block
                    if len(body) > MOST_BYTES:
                        return
    except (httpx2.HTTPError, TimeoutError):
        return
    except AttributeError:  # anyio on uvloop, if the connection was reset as it was made
        return
    bodies[path] = body
