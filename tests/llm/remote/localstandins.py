"""Stand-ins of the language-model servers that people run: each answers as its documentation says.

Ollama's shapes are those of its API reference (`/api/version`, `/api/tags`, `/api/ps`) and of its
OpenAI-compatible `/v1`; those of LM Studio, llama.cpp and vLLM likewise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.llm.remote.chatservers import Play, Request, Scripted, saying

GONE: Play = lambda request: request.status(404, {"error": "not found"})  # noqa: E731


def by_path(pages: Mapping[str, object]) -> Play:
    """Answer each path with its page: JSON, bytes as they are, or a play."""

    def play(request: Request) -> None:
        page = pages.get(request.path.lstrip("/"), GONE)
        if callable(page):
            page(request)
        else:
            request.status(200, page)

    return play


def listing(names: Sequence[str], owner: str, **more: object) -> dict[str, object]:
    """What `/v1/models` says."""
    models = [{"id": name, "object": "model", "created": 1, "owned_by": owner} for name in names]
    return {"object": "list", "data": [model | more for model in models]}


def tag(name: str, family: str = "llama", **more: object) -> dict[str, object]:
    """A model as Ollama's `/api/tags` describes it."""
    details = {"parent_model": "", "format": "gguf", "family": family, "families": [family]}
    details |= {"parameter_size": "3.2B", "quantization_level": "Q4_K_M"}
    return {
        "name": name,
        "model": name,
        "modified_at": "2026-05-04T14:56:49.277302595-07:00",
        "size": 2_019_393_189,
        "digest": "a80c4f17acd55265feec403c7aef86be0c25983ab279d83f3bcd3abbcb5b8b72",
        "details": details,
        **more,
    }


OLLAMA = (
    tag("llama3.2:latest"),
    tag("qwen2.5:7b", "qwen2"),
    tag("nomic-embed-text:latest", "nomic-bert"),
    tag("all-hands:1b", "bert"),
    tag("gpt-oss:120b-cloud", "gptoss", remote_host="https://ollama.com", remote_model="gpt-oss"),
    tag("gemma3:4b", "gemma3", capabilities=["completion", "vision"]),
    tag("finder:1b", "gemma3", capabilities=["embedding"]),
)
"""Of which three can chat here: a cloud model leaves the machine, and others embed."""


def ollama(
    models: Sequence[Mapping[str, object]] = OLLAMA, loaded: Sequence[str] = ()
) -> dict[str, object]:
    """The pages of Ollama."""
    running = [
        tag(name) | {"expires_at": "2026-06-04T14:38:31Z", "size_vram": 1} for name in loaded
    ]
    return {
        "api/version": {"version": "0.12.6"},
        "api/tags": {"models": list(models)},
        "api/ps": {"models": running},
        "v1/models": listing([str(model["name"]) for model in models], "library"),
    }


def lm_studio() -> dict[str, object]:
    """The pages of LM Studio."""

    def model(name: str, kind: str, state: str) -> dict[str, object]:
        return {"id": name, "object": "model", "type": kind, "state": state, "arch": "llama"}

    models = [
        model("qwen2-vl-7b-instruct", "vlm", "not-loaded"),
        model("meta-llama-3.1-8b-instruct", "llm", "loaded"),
        model("text-embedding-nomic-embed-text-v1.5", "embeddings", "loaded"),
    ]
    names = [str(one["id"]) for one in models]
    return {
        "api/v0/models": {"object": "list", "data": models},
        "v1/models": listing(names, "organization_owner"),
    }


def llama_cpp(name: str = "gemma-3-1b-it-Q4_K_M.gguf") -> dict[str, object]:
    """The pages of llama.cpp's own server; it describes the model in Ollama's manner too."""
    meta = {"vocab_type": 2, "n_vocab": 128_256, "n_ctx_train": 131_072, "n_embd": 4096}
    described = {"name": name, "model": name, "type": "model", "capabilities": ["completion"]}
    return {"v1/models": listing([name], "llamacpp", meta=meta) | {"models": [described]}}


def vllm(name: str = "Qwen/Qwen3-8B") -> dict[str, object]:
    """The pages of vLLM."""
    return {"v1/models": listing([name], "vllm", root=name, parent=None, max_model_len=4096)}


@contextmanager
def standing_in(pages: Mapping[str, object], *plays: Play, port: int = 0) -> Iterator[Scripted]:
    """A server with these pages, that replies as `plays` say."""
    with Scripted(*(plays or (saying("Yes."),)), models=by_path(pages), port=port) as server:
        yield server


def thousands() -> bytes:
    """A list of very many models, one a mebibyte long with them."""
    return json.dumps(listing([f"model-{n}" for n in range(9_000)], "x")).encode()
