"""What programs may import, and what an import of the package loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import voiceloop

pytestmark = pytest.mark.real

NAMES = {
    *(
        "open",
        "run",
        "tool",
        "Loop",
        "Talk",
        "AnsweredTurn",
        "Config",
        "VoiceloopError",
        "__version__",
    ),
    *("TalkEvent", "TurnOver", "Transcript", "TokenBurst", "ToolCall", "Clause", "Notice"),
    *("TurnHeard", "FloorChange", "Microphone", "Speaker", "Vad", "Asr", "TurnModel", "Llm", "Tts"),
}
"""What does not change without a line in the changelog."""


def loaded_by(statement: str) -> set[str]:
    """The modules that a statement loads in a fresh process."""
    program = (
        f"import sys; before = {{*sys.modules}}; {statement}; print(*{{*sys.modules}} - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_names_are_those_of_the_list() -> None:
    assert set(voiceloop.__all__) == NAMES
    assert len(voiceloop.__all__) == len(NAMES)
    assert set(dir(voiceloop)) >= NAMES


def test_each_name_is_there_and_says_what_it_is() -> None:
    for name in sorted(NAMES - {"__version__", "TalkEvent"}):
        assert getattr(voiceloop, name).__doc__, name


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="'voiceloop' has no attribute 'closed'"):
        _ = voiceloop.closed  # pyright: ignore[reportAttributeAccessIssue]


def test_an_import_loads_the_package_and_nothing_else() -> None:
    assert loaded_by("import voiceloop") == {"voiceloop"}


def test_help_loads_nothing_that_takes_long() -> None:
    heavy = {"numpy", "starlette", "uvicorn", "torch", "onnxruntime", "sqlite3"}
    assert not heavy & loaded_by("from voiceloop.cli.main import main")


def test_names_that_need_no_model_load_no_large_package() -> None:
    loaded = loaded_by("import voiceloop; voiceloop.Config, voiceloop.VoiceloopError")
    assert not loaded & {"torch", "transformers", "onnxruntime", "anyio", "asyncio", "numpy"}
    everything = loaded_by("from voiceloop import *")
    assert not everything & {"torch", "transformers", "ctranslate2", "sounddevice"}
