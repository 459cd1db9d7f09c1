"""Installing: which torch pip is told to take, and what is shown meanwhile."""

from __future__ import annotations

import functools
import io
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tools import install

pytestmark = pytest.mark.real

PIP = """
import json, os, sys
json.dump(sys.argv[1:], open(os.environ["ASKED"], "w"))
print(os.environ["PRINTED"], end="", flush=True)
print("a warning", file=sys.stderr)
sys.exit(int(os.environ["STATUS"]))
"""
# pip 23 and pip 26, which download at different moments.
OLD = """\
Obtaining file:///tmp/voiceloop
  Installing build dependencies: started
Collecting anyio>=4.9 (from voiceloop==0.1.0)
  Downloading anyio-4.16.0-py3-none-any.whl (134 kB)
Requirement already satisfied: numpy>=2.0 in ./lib (from voiceloop==0.1.0) (2.4.6)
Processing /opt/files/llama_cpp_python-0.3.36.tar.gz (from voiceloop==0.1.0)
Building wheels for collected packages: llama-cpp-python
  Building wheel for llama-cpp-python (pyproject.toml): started
  Building wheel for llama-cpp-python (pyproject.toml): finished with status 'done'
Successfully built llama-cpp-python
Installing collected packages: llama-cpp-python, anyio, voiceloop
  Attempting uninstall: anyio
Successfully installed anyio-4.16.0 llama-cpp-python-0.3.36 voiceloop-0.1.0
"""
NEW = """\
Collecting torch>=2.6 (from voiceloop==0.1.0)
  Downloading http://localhost/torch/torch-2.13.0%2Bcpu-cp311-linux_x86_64.whl.metadata (28 kB)
Downloading http://localhost/torch/torch-2.13.0%2Bcpu-cp311-linux_x86_64.whl (191.8 MB)
Installing collected packages: torch
"""


class Terminal(io.StringIO):
    """Text that a terminal was sent."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index that has torch."""
    (tmp_path / "index" / "torch").mkdir(parents=True)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "index"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def nowhere(index: str) -> str:
    """The address of an index that has no torch."""
    return f"{index}/none"


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[str], str]]:
    """A call that installs by a stand-in for pip: status, what pip was asked, what was printed."""

    def install_(
        *words: str, index: str = "", card: int | None = None, system: str = "Linux", pip: int = 0
    ) -> tuple[int, list[str], str]:
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "pip.py").write_text(PIP)
        if card is not None:
            (programs / "nvidia-smi").write_text(f"#!/bin/sh\nexit {card}\n")
            (programs / "nvidia-smi").chmod(0o755)
        for name, value in {
            "PATH": str(programs),
            "PYTHONPATH": str(programs),
            "ASKED": str(tmp_path / "asked"),
            "PRINTED": OLD,
            "STATUS": str(pip),
        }.items():
            monkeypatch.setenv(name, value)
        status = install.main(words, system, index)
        return status, json.loads((tmp_path / "asked").read_text()), capfd.readouterr().out

    return install_


def named(asked: list[str]) -> list[str]:
    """The indexes that pip is asked to look at besides its own."""
    return [value for option, value in itertools.pairwise(asked) if option == "--extra-index-url"]


@pytest.mark.parametrize("torch", ["auto", "cpu"])
def test_without_a_card_torch_is_taken_without_cuda(installed, index: str, torch: str) -> None:
    _, asked, printed = installed("--torch", torch, "-e", ".", index=index)
    assert named(asked) == [index]
    assert "torch without CUDA" in printed


@pytest.mark.parametrize("torch", ["auto", "cuda"])
def test_for_a_card_torch_is_pypis(installed, index: str, torch: str) -> None:
    _, asked, printed = installed("--torch", torch, "-e", ".", index=index, card=0)
    assert named(asked) == []
    assert "torch with CUDA" in printed


def test_a_driver_that_finds_no_card_is_none(installed, index: str) -> None:
    _, asked, _ = installed("--torch", "auto", "-e", ".", index=index, card=9)
    assert named(asked) == [index]


def test_a_card_is_left_alone_on_demand(installed, index: str) -> None:
    _, asked, _ = installed("--torch", "cpu", "-e", ".", index=index, card=0)
    assert named(asked) == [index]


def test_an_index_that_does_not_answer_is_not_named(installed, nowhere: str) -> None:
    status, asked, printed = installed("--torch", "auto", "-e", ".", index=nowhere)
    assert (status, named(asked)) == (0, [])
    assert "does not answer" in printed and "3.5 GB more" in printed


@pytest.mark.parametrize("torch", ["auto", "cpu", "cuda"])
def test_other_systems_have_one_torch(installed, index: str, torch: str) -> None:
    _, asked, printed = installed("--torch", torch, "-e", ".", index=index, system="Darwin")
    assert named(asked) == []
    assert "torch" not in printed


def test_what_is_installed_without_torch_asks_no_index(installed, index: str) -> None:
    _, asked, printed = installed("-c", "constraints.txt", "-e", ".[convert]", index=index)
    assert named(asked) == [] and "torch" not in printed
    assert asked[-4:] == ["-c", "constraints.txt", "-e", ".[convert]"]
    assert "install" in asked


@pytest.mark.parametrize("card, answer", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("torch", ["auto", "cpu", "cuda"])
@pytest.mark.parametrize("system", ["Linux", "Darwin", "Windows"])
def test_the_index_is_named_if_it_answers_and_is_needed(
    system: str, torch: str, card: bool, answer: bool
) -> None:
    asked: list[str] = []

    def answers() -> bool:
        asked.append("index")
        return answer

    needed = system == "Linux" and (torch == "cpu" or (torch == "auto" and not card))
    assert install.choice(torch, system, lambda: card, answers)[0] == (needed and answer)
    assert asked == ["index"] * needed


@pytest.mark.parametrize("status", [0, 3])
def test_the_status_is_pips(installed, status: int) -> None:
    assert installed("-e", ".", pip=status)[0] == status


def test_where_nothing_is_rewritten_a_stage_is_a_line(installed) -> None:
    _, _, printed = installed("-e", ".")
    assert printed.splitlines() == [
        "  collecting packages",
        "  building llama-cpp-python",
        "  installing packages",
    ]


@pytest.mark.parametrize(
    "printed, shown",
    [
        (OLD, ["2, llama_cpp_python", "1, anyio-4.16.0 (134 kB)", "installing packages: 3, "]),
        (NEW, ["1, torch, ", "1, torch-2.13.0 (191.8 MB)", "installing packages: 1, "]),
    ],
)
def test_a_terminal_has_one_line_that_is_cleared_at_the_end(
    printed: str, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    install.follow(io.StringIO(printed), terminal)
    *states, last = terminal.getvalue().split("\r")
    assert "\n" not in terminal.getvalue() and last == "\x1b[K"
    assert all(state.startswith("\x1b[K  ") for state in states)
    for words in shown:
        assert any(words in state for state in states), words


def test_a_narrow_terminal_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    install.follow(io.StringIO(NEW), terminal)
    assert max(map(len, terminal.getvalue().replace("\x1b[K", "").split("\r"))) == 19
