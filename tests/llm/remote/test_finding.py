"""Language-model servers on this machine: found, told apart, and none of them believed."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.llm.remote.chatservers import Request
from tests.llm.remote.localstandins import (
    listing,
    llama_cpp,
    lm_studio,
    ollama,
    standing_in,
    tag,
    thousands,
    vllm,
)
from tests.server.serving import free_port
from voiceloop.errors import ConfigError
from voiceloop.llm.remote.finding import MOST_BYTES, PATIENCE_S, begin_search, find_servers
from voiceloop.llm.remote.servers import (
    HOST,
    KNOWN,
    LONGEST_NAME,
    MODELS,
    MOST_MODELS,
    PORTS,
    LocalServer,
    ServerChoice,
    paths,
    pick,
    read_asked,
    read_server,
    told_apart,
)
from voiceloop.server.port import LOOP

pytestmark = pytest.mark.real


def found_at(*ports: int) -> list[LocalServer]:
    return anyio.run(find_servers, ports)


def read(pages: Mapping[str, object], port: int = 1) -> LocalServer | None:
    bodies = {
        path: page if isinstance(page, bytes) else json.dumps(page).encode()
        for path, page in pages.items()
    }
    return read_server(port, bodies)


# ---- what is found


@pytest.mark.parametrize(
    ("pages", "name", "models"),
    [
        (ollama(), "Ollama", ("llama3.2", "qwen2.5:7b", "gemma3:4b")),
        (lm_studio(), "LM Studio", ("meta-llama-3.1-8b-instruct", "qwen2-vl-7b-instruct")),
        (llama_cpp(), "llama.cpp", ("gemma-3-1b-it-Q4_K_M.gguf",)),
        (vllm(), "vLLM", ("Qwen/Qwen3-8B",)),
        ({"v1/models": listing(["small"], "me")}, "a server at port {}", ("small",)),
    ],
    ids=["Ollama", "LM Studio", "llama.cpp", "vLLM", "another"],
)
def test_each_kind_is_known_by_what_it_says_with_the_models_that_can_chat(
    pages: Mapping[str, object], name: str, models: tuple[str, ...]
) -> None:
    with standing_in(pages) as server:
        (found,) = found_at(server.port)
    assert (found.name, found.models) == (name.format(server.port), models)
    assert found.url == f"http://{HOST}:{server.port}/v1"
    assert found.told.endswith(f" is running here with {models[0]}{_more(models)}")
    assert found.told[0].isupper() or found.told.startswith(("vLLM", "llama.cpp"))


def _more(models: tuple[str, ...]) -> str:
    return f" and {len(models) - 1} more" if len(models) > 1 else ""


def test_what_ollama_has_loaded_is_taken_first() -> None:
    with standing_in(ollama(loaded=["gemma3:4b"])) as server:
        (found,) = found_at(server.port)
    assert found.models == ("gemma3:4b", "llama3.2", "qwen2.5:7b")
    assert found.told == "Ollama is running here with gemma3:4b and 2 more"


def test_all_are_asked_at_once_and_two_of_a_kind_are_told_apart() -> None:
    with ExitStack() as stack:
        first, second, other = (
            stack.enter_context(standing_in(pages)) for pages in (vllm(), vllm("b"), lm_studio())
        )
        found = found_at(first.port, free_port(), second.port, other.port)
    assert [one.id for one in found] == ["vllm", str(second.port), "lm-studio"]


def test_a_search_runs_beside_other_work() -> None:
    with standing_in(ollama()) as server:
        (found,) = begin_search([server.port]).result(timeout=60)
    assert found.name == "Ollama"


def test_nobody_is_asked_who_is_not_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert HOST == "127.0.0.1" and len(set(PORTS)) == len(PORTS)
    with standing_in({}) as proxy, standing_in(ollama()) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("VOICELOOP_LLM_KEY", "secret-of-somebody-else")
        assert len(found_at(server.port)) == 1
        assert proxy.requests == []
        assert not any("Authorization" in one.headers for one in server.requests)
        assert {one.command for one in server.requests} == {"GET"}


def test_where_an_answer_points_elsewhere_nobody_follows() -> None:
    with standing_in(ollama()) as elsewhere:

        def pointing(request: Request) -> None:
            request.status(302, b"", Location=f"http://127.0.0.1:{elsewhere.port}{request.path}")

        with standing_in({path: pointing for path in ollama()}) as server:
            assert found_at(server.port) == []
        assert elsewhere.requests == []


# ---- what is not believed


def _endless(request: Request) -> None:
    request.begin("application/json")
    while True:
        request.send(b" " * 65_536)


HOSTILE: dict[str, object] = {
    "no JSON": b"<html>hello</html>",
    "another shape": {"data": "models"},
    "numbers for models": {"data": [1, None, {"id": 5}, {"id": ["a"]}, []]},
    "nothing": {},
    "deep": b"[" * 100_000,
    "not UTF-8": b"\xff\xfe\x00",
    "longer than is read": b" " * (MOST_BYTES + 1) + json.dumps(listing(["a"], "x")).encode(),
    "endless": _endless,
    "packed": lambda request: request.status(200, b"\x1f\x8b\x08\x00", Content_Encoding="gzip"),
    "refused": lambda request: request.status(401, {"error": "a key, please"}),
    "broken off": lambda request: request.drop(),
    "no model that chats": listing(["bge-m3", "whisper-large-v3", "text-embedding-3-small"], "x"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_list_of_models_is_no_server(kind: str) -> None:
    with standing_in({MODELS: HOSTILE[kind]}) as server:
        assert found_at(server.port) == []


def test_a_server_that_says_nothing_is_waited_for_no_longer_than_a_moment() -> None:
    """The others are found meanwhile."""
    over = threading.Event()
    with standing_in({MODELS: lambda request: over.wait(60)}) as mute, standing_in(vllm()) as other:
        found = found_at(mute.port, other.port)
        over.set()
    assert [one.name for one in found] == ["vLLM"]
    assert PATIENCE_S <= 1


def test_a_port_that_speaks_another_language_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as port:

        def speak() -> None:
            for _ in paths(port.getsockname()[1]):
                connection, _ = port.accept()
                with connection:
                    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 100)

        threading.Thread(target=speak, daemon=True).start()
        assert found_at(port.getsockname()[1]) == []


def test_a_port_that_resets_connections_as_they_are_made_is_no_server() -> None:
    with socket.create_server((HOST, 0)) as listening:

        def reset() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()

        async def search_while_busy() -> list[LocalServer]:
            """On the server's loop, which gets to its connections late."""
            port = listening.getsockname()[1]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(hog)
                found = await find_servers([port])
                tasks.cancel_scope.cancel()
            return found

        resets = threading.Thread(target=reset)
        resets.start()
        try:
            assert all(anyio.run(search_while_busy, backend_options=LOOP) == [] for _ in range(20))
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            resets.join()


async def hog() -> None:
    while True:
        time.sleep(0.005)  # noqa: ASYNC251 - it is meant to block
        await anyio.lowlevel.checkpoint()


def test_of_thousands_of_models_the_first_are_offered() -> None:
    assert len(thousands()) < MOST_BYTES
    with standing_in({MODELS: thousands()}) as server:
        (found,) = found_at(server.port)
    assert found.models == tuple(f"model-{n}" for n in range(MOST_MODELS))


@pytest.mark.parametrize(
    "name",
    ["", " a", "a\n", "a\x1b[2J", "\u202ea", "a\x00", "a" * (LONGEST_NAME + 1), "\ud800"],
    ids=repr,
)
def test_names_that_could_steer_a_terminal_are_left_out(name: str) -> None:
    found = read({MODELS: listing([name, "good"], "x")})
    assert found is not None and found.models == ("good",)
    assert read({MODELS: listing([name], "x")}) is None


@pytest.mark.parametrize(
    "name",
    [
        *("nomic-embed-text", "mxbai-embed-large", "embeddinggemma:300m", "BAAI/bge-reranker-v2"),
        *("all-minilm", "intfloat/e5-large", "Systran/faster-whisper-small", "hexgrad/kokoro"),
        *("openai/whisper-1", "tts-1", "stable-diffusion-3", "llama-guard3:8b", "google/bert"),
    ],
)
def test_models_whose_names_say_that_they_do_not_chat_are_left_out(name: str) -> None:
    assert read({MODELS: listing([name], "x")}) is None


@pytest.mark.parametrize(
    "name", ["llama3.2", "roberta-7b-chat", "Qwen/Qwen3-4B", "hubert-chat", "mottse", "genome5"]
)
def test_models_whose_names_only_look_so_are_not(name: str) -> None:
    assert read({MODELS: listing([name], "x")}) is not None


KEYS = ["data", "models", "id", "name", "details", "family", "capabilities", "state", "type"]
KEYS += ["owned_by", "version", "remote_host"]
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from(["completion", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(paths(1)), JSON, max_size=5), st.binary(max_size=20))
def test_whatever_it_says_there_is_a_server_with_models_or_none(
    pages: dict[str, Any], junk: bytes
) -> None:
    found = read(pages | {"api/ps": junk})
    if found is not None:
        assert found.models and all(name and name.isprintable() for name in found.models)
        assert "\n" not in found.told


# ---- what is asked for


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("ollama", ServerChoice("ollama")),
        ("Ollama/llama3.2", ServerChoice("ollama", "llama3.2")),
        ("vllm/Qwen/Qwen3-8B", ServerChoice("vllm", "Qwen/Qwen3-8B")),
        ("8081", ServerChoice("8081")),
        ("8081/a", ServerChoice("8081", "a")),
        ("localhost:11434", ServerChoice("11434")),
        ("http://localhost:11434/v1/", ServerChoice("11434")),
        ("http://127.0.0.1:8000/v1/Qwen/Qwen3-8B", ServerChoice("8000", "Qwen/Qwen3-8B")),
        ("http://[::1]:8000", ServerChoice("8000")),
        ("none", ServerChoice("none")),
    ],
)
def test_a_server_may_be_called_by_name_port_or_address(text: str, asked: ServerChoice) -> None:
    assert read_asked(text) == asked


OLLAMA = LocalServer("ollama", "Ollama", 11434, ("llama3.2", "qwen2.5:7b"))


@pytest.mark.parametrize("text", ["llama3.2", "llama3.2:latest", "qwen2.5:7b"])
def test_a_model_alone_is_enough_if_a_server_here_has_it(text: str) -> None:
    other = LocalServer("vllm", "vLLM", 8000, ("hf.co/someone/a",))
    picked = pick(read_asked(text), [other, OLLAMA])
    assert picked.id == "ollama" and picked.models[0] == text.removesuffix(":latest")
    assert set(picked.models) == set(OLLAMA.models)
    assert pick(read_asked("hf.co/someone/a"), [OLLAMA, other]) == other


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("olama", "did you mean 'ollama'?"),
        ("olama/llama3.2", "did you mean 'llama3.2'?"),
        ("lama3.2", "did you mean 'llama3.2'?"),
        ("", "choose one of: ollama, lm-studio, llama.cpp, vllm, none"),
        ("0", "ports are from 1 to 65535"),
        ("localhost:70000", "ports are from 1 to 65535"),
        ("http://example.org:11434", "--llm.base-url"),
        ("http://localhost:80@example.org", "--llm.base-url"),
        ("https://localhost:8000", "--llm.base-url"),
    ],
)
def test_what_is_no_server_of_this_machine_is_refused_in_one_line(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pick(read_asked(text), [OLLAMA])
    assert hint in caught.value.hint and "\n" not in caught.value.message


def test_a_model_that_is_asked_for_comes_first_and_one_that_there_is_not_is_told() -> None:
    server = LocalServer("ollama", "Ollama", 11434, ("llama3.2", "qwen2.5:7b"))
    assert pick(ServerChoice("ollama"), [server]) == server
    assert pick(ServerChoice("11434", "qwen2.5:7b"), [server]).models == ("qwen2.5:7b", "llama3.2")
    assert pick(ServerChoice("ollama", "llama3.2:latest"), [server]).models[0] == "llama3.2"
    with pytest.raises(ConfigError, match="no model to chat that is called") as caught:
        pick(ServerChoice("ollama", "lama3.2"), [server])
    assert caught.value.hint == "did you mean 'llama3.2'?"
    with pytest.raises(ConfigError, match="vLLM on this machine does not answer") as caught:
        pick(ServerChoice("vllm"), [server])
    assert caught.value.hint == "there is Ollama (--llm-server ollama)"
    with pytest.raises(ConfigError, match="Ollama on this machine does not answer") as caught:
        pick(ServerChoice("ollama"), [])
    assert caught.value.hint.startswith("start it with `ollama serve`")
    with pytest.raises(ConfigError, match="port 9 on this machine"):
        pick(ServerChoice("9"), [])


def test_only_ollama_leaves_latest_out_of_names() -> None:
    found = read(vllm("mine:latest"))
    assert found is not None and found.models == ("mine:latest",)
    found = read(ollama([tag("mine:latest")]))
    assert found is not None and found.models == ("mine",)


def test_every_known_server_is_asked_for_no_more_than_tells() -> None:
    assert [paths(known.port) for known in KNOWN] == [
        (MODELS, "api/version", "api/tags", "api/ps"),
        (MODELS, "api/v0/models"),
        (MODELS,),
        (MODELS,),
    ]
    assert (
        len({one.id for one in told_apart(LocalServer("a", "A", n, ("m",)) for n in (1, 2))}) == 2
    )
