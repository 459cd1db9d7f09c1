"""The line that tells what is being loaded."""

from __future__ import annotations

import io
import os
import threading

import pytest
from msgspec.structs import replace

from voiceloop.settings.config import AsrConfig, Config, LlmConfig, TtsConfig
from voiceloop.status import ask, engine_names, loading

pytestmark = pytest.mark.pure


class Terminal(io.StringIO):
    """Tells when it was written to a third time: some time has passed then."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.refreshed = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self.count += 1
        if self.count == 3:
            self.refreshed.set()
        return super().write(text)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "voiceloop-status"]


def test_it_is_there_at_once_and_goes_on_until_all_is_loaded() -> None:
    terminal = Terminal()
    with loading("whisper tiny.en", terminal):
        assert terminal.getvalue() == "voiceloop: loading whisper tiny.en …"
        assert terminal.refreshed.wait(60)
    assert not threads()
    shown = terminal.getvalue()
    assert "\r\x1b[Kvoiceloop: loading whisper tiny.en … 0.1 s" in shown
    assert shown.endswith("\r\x1b[K") and "\n" not in shown


@pytest.mark.parametrize("columns", [1, 40, 80, 0, 200])
def test_it_stays_within_one_line_of_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A broken line could not be taken back: each tenth of a second would leave one behind.
    monkeypatch.setattr(Terminal, "fileno", lambda _: 0)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    terminal, what = Terminal(), "one model, " * 10
    with loading(what, terminal):
        assert terminal.refreshed.wait(60)
    shown = terminal.getvalue().split("\r\x1b[K")
    assert all(len(line) < max(columns or 80, 10) for line in shown)
    assert (what in shown[0]) is (columns == 200)


def test_a_failure_leaves_the_terminal_clear_and_no_thread() -> None:
    terminal = Terminal()
    with pytest.raises(RuntimeError), loading("it", terminal):
        raise RuntimeError
    assert terminal.getvalue().endswith("\r\x1b[K") and not threads()


def test_it_is_one_plain_line_where_there_is_no_terminal() -> None:
    log = io.StringIO()
    with loading("it", log):
        assert log.getvalue() == "voiceloop: loading it …"
        assert not threads()
    assert log.getvalue() == "voiceloop: loading it … 0.0 s\n"
    failed = io.StringIO()
    with pytest.raises(RuntimeError), loading("it", failed):
        raise RuntimeError
    assert failed.getvalue() == "voiceloop: loading it …\n"


def test_engines_are_called_as_the_user_calls_them() -> None:
    assert engine_names(Config()) == "whisper starter, llm starter, espeak"
    named = replace(
        Config(),
        asr=AsrConfig(model="/models/whisper-tiny.en/"),
        llm=LlmConfig(target="Qwen/Qwen3-0.6B"),
        tts=TtsConfig(engine="coqui", model="tts_models/en/ljspeech/vits"),
    )
    assert engine_names(named) == "whisper whisper-tiny.en, llm Qwen3-0.6B, coqui vits"
    assert engine_names(replace(named, asr=AsrConfig(engine="own"))).startswith("own, ")


def test_a_question_stands_in_place_of_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    asked: list[str] = []

    def typed() -> str:
        asked.append(terminal.getvalue())
        return "Yes\n"

    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(terminal, "readline", typed)
    with loading("it", terminal):
        assert terminal.refreshed.wait(60)
        assert ask("is that so?") is True
    assert asked[0].endswith("\r\x1b[Kis that so? [y/N] ")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert ask("is that so?") is None
