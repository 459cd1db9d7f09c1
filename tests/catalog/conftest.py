"""What the tests of the catalog share: a server, a store, and pulling as a user does."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.servers import Server, serving, wheel_of
from voiceloop.catalog.store import Model, ModelStore

PROGRAM = """
import sys
from pathlib import Path
from voiceloop.catalog.cards import parse
from voiceloop.catalog.command import ModelsPull, models_pull
from voiceloop.cli.main import print_error
from voiceloop.errors import VoiceloopError
from voiceloop.settings import flags

command = flags.parse({"pull": ModelsPull}, sys.argv[2:], files=())
ask = None
try:
    sys.exit(models_pull(command, parse(Path(sys.argv[1]).read_text()), ask))
except VoiceloopError as error:
    print_error(error)
    sys.exit(2)
"""
"""`voiceloop models pull` with the cards of a file and nobody to ask."""


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@dataclass
class Shop:
    """A store, and a user who pulls into it from a server."""

    folder: Path
    server: Server

    @property
    def store(self) -> ModelStore:
        return ModelStore(self.folder / "models")

    def cards(self, text: str) -> None:
        (self.folder / "cards.toml").write_text(text)

    def start(
        self, *argv: str, told: int = subprocess.PIPE, **environ: str
    ) -> subprocess.Popen[str]:
        """`voiceloop models pull` in a process of its own; what it tells goes to `told`."""
        env = {key: value for key, value in os.environ.items() if key[:4] != "PIP_"}
        env |= {
            "VOICELOOP_MODELS": str(self.folder / "models"),
            "XDG_CONFIG_HOME": str(self.folder),
            "HF_HOME": str(self.folder / "hf"),
            "HF_HUB_OFFLINE": "0",
            "HF_ENDPOINT": self.server.url,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": f"{self.server.url}/simple",
            "PIP_CACHE_DIR": str(self.folder / "pip"),
        }
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self.folder / "cards.toml"), "pull", *argv],
            env=env | environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=told,
            cwd=Path(__file__).parents[2],
        )

    def pull(self, *argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*argv, told=subprocess.PIPE, **environ)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def complaint(self, *argv: str, **environ: str) -> list[str]:
        """The lines that a pull writes that fails."""
        done = self.pull(*argv, **environ)
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stderr.splitlines()


@pytest.fixture
def shop(tmp_path: Path, server: Server) -> Shop:
    return Shop(tmp_path, server)


def put(store: ModelStore, name: str, origin: str = "packages", body: bytes = b"weights") -> Model:
    """Put a model of one file into the store."""
    with store.workshop(name, origin) as workshop:
        (workshop / "made").mkdir()
        (workshop / "made" / "model.bin").write_bytes(body)
        return store.put(workshop / "made", name, origin, {})


def sum_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def file_lines(files: Mapping[str, bytes]) -> str:
    return "\n".join(
        f'  {{ name = "{name}", bytes = {len(body)}, sha256 = "{sum_of(body)}" }},'
        for name, body in files.items()
    )


def card(
    name: str, origin: str, files: Mapping[str, bytes], *, free: bool = True, kind: str = "asr"
) -> str:
    """The beginning of a card, up to where its source is told."""
    return f"""
[[card]]
name = "{name}"
title = "The {name}"
kind = "{kind}"
from = "{origin}"
publisher = "Somebody"
languages = ["en"]
precision = "float16"
memory = 1000
licence = {{ spdx = "L-1", free = {str(free).lower()}, url = "https://example.org/licence" }}
files = [
{file_lines(files)}
]
"""


def hub_card(
    name: str, repo: str, files: Mapping[str, bytes], commit: str | None, **told: Any
) -> str:
    pinned = f'revision = "{commit}"' if commit else ""
    return card(name, "hub", files, **told) + f'repo = "{repo}"\n{pinned}\n'


def package_card(
    name: str, files: Mapping[str, bytes], package: str, wheel: bytes, take: Sequence[str]
) -> str:
    lines = "\n".join(f'  {{ member = "inside/{member}", to = "{member}" }},' for member in take)
    return (
        card(name, "packages", files)
        + f"""
[[card.wheel]]
package = "{package}"
version = "1.0"
author = "Ada"
bytes = {len(wheel)}
sha256 = "{sum_of(wheel)}"
take = [
{lines}
]
"""
    )


def packaged(shop: Shop, name: str, files: Mapping[str, bytes]) -> bytes:
    """A card that comes from a package of the server; returns the wheel."""
    told = {"METADATA": b"Metadata-Version: 2.1\nName: some-weights\nVersion: 1.0\n"}
    told |= {"WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    inside = {f"inside/{file}": body for file, body in files.items()} | {"setup.py": b"1"}
    wheel = wheel_of(
        inside | {f"some_weights-1.0.dist-info/{name}": body for name, body in told.items()}
    )
    shop.server.index("some-weights", "1.0", wheel)
    shop.cards(package_card(name, files, "some-weights", wheel, list(files)))
    return wheel
