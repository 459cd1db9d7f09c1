"""What `talk` and `serve` run with: presets, servers of this machine, and what is said of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.catalog.test_pulled import pulled
from tests.cli.test_main import assert_one_line_and_a_hint
from tests.llm.remote.localstandins import ollama, standing_in
from tests.server.serving import free_port
from tests.settings.test_presets import machine
from voiceloop.assembly.choosing import (
    ChoiceNotice,
    Choosing,
    advised,
    best_settings,
    check_target,
    notes,
    settle,
    this_machine,
)
from voiceloop.bundled import STARTER_HEARS
from voiceloop.catalog.store import ModelStore
from voiceloop.errors import ConfigError, ModelNotFound
from voiceloop.llm.remote.errors import RequestError
from voiceloop.llm.remote.finding import begin_search
from voiceloop.server.session.offers import Offers
from voiceloop.settings.config import load_config
from voiceloop.settings.presets import BEST_PULLED

__all__ = ["pulled"]

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def own_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The store of `pulled`, and no other."""
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))


def choosing(files: list[Path] | None = None, server: str | None = None, **flags: str) -> Choosing:
    given = {key.replace("__", "."): value for key, value in flags.items()}
    settings, origins = load_config(files or [], given)
    return Choosing(settings=settings, origins=origins, llm_server=server)


def settled(command: Choosing, **options: Any) -> tuple[Choosing, ChoiceNotice]:
    usual: dict[str, Any] = {"looks": False, "machine": machine(), "ask": None}
    return settle(command, **usual | options)


def test_the_best_preset_is_taken_and_said_in_one_line(pulled: Callable[..., ModelStore]) -> None:
    pulled("mini")
    command, told = settled(choosing())
    assert command.settings.asr.model == "tiny.en"
    assert command.origins["preset"] == BEST_PULLED
    assert told.all() == ["preset mini: the best of what has been pulled"]
    assert (command.settings, command.origins) == best_settings(*load_config(), machine=machine())


def test_without_a_terminal_the_starter_is_taken_and_one_line_says_so() -> None:
    command, told = settled(choosing())
    assert command.settings == choosing().settings
    assert told.all() == ["preset starter: no other that runs here has been pulled"]


def test_at_a_terminal_they_choose_and_may_go_on_with_the_starter() -> None:
    asked = list[str]()

    def starter(text: str) -> str:
        asked.append(text)
        return "s"

    command, told = settled(choosing(), ask=starter)
    assert command.settings.preset == "starter" and len(told.all()) == len(asked) == 1
    settled(choosing(llm__target="mine"), ask=starter)
    assert len(asked) == 1, "whoever has named a model knows what they want"


# ---- what is said of models that are not good enough


def test_every_suggestion_is_what_suits_the_machine(
    pulled: Callable[..., ModelStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a command where the models are not here, else the option that takes them."""
    suits = this_machine().suggested().name
    tiny, starter = load_config(flags={"preset": "mini"})[0], load_config()[0]
    laptop, _ = load_config(flags={"preset": "laptop"})
    advised.cache_clear()
    if suits != "starter":  # a machine of one core
        pull = f"; for this machine: voiceloop models pull {suits}"
        assert advised("x", chooses=False) == f"x{pull}, then --preset {suits}"
        assert notes(starter)[0] == f"{STARTER_HEARS}{pull}"
        pulled(suits)
        advised.cache_clear()
        assert (
            advised("x") == advised("x", chooses=False) == f"x; for this machine: --preset {suits}"
        )
    assert advised("x", "best") == "x"
    assert "quick try" in notes(tiny)[0] and len(notes(tiny)) == 1 and notes(laptop) == ()
    elsewhere = replace(tiny.llm, engine="openai", base_url="http://localhost:11434/v1")
    assert notes(replace(tiny, llm=elsewhere)) == ()
    advised.cache_clear()


# ---- a server on this machine


def test_a_server_replies_and_real_models_hear_and_speak(pulled: Callable[..., ModelStore]) -> None:
    pulled("tiny.en", "smart-turn-v3.2", "en_US-joe-medium")
    with standing_in(ollama(loaded=["gemma3:4b"])) as server:
        command, told = settled(choosing(server=f"localhost:{server.port}"))
    settings, url = command.settings, f"http://127.0.0.1:{server.port}/v1"
    assert (settings.llm.engine, settings.llm.base_url) == ("openai", url)
    assert settings.llm.target == "gemma3:4b" and command.origins["llm.target"] == "--llm-server"
    assert (settings.asr.model, settings.tts.engine) == ("tiny.en", "piper")
    assert settings.llm.repetition_penalty == 1.0
    assert told.all() == [
        "preset cpu: the best of what has been pulled",
        f"Ollama replies with gemma3:4b, at {url}",
    ]


NAMED = ({"preset": "starter"}, {"asr__engine": "own", "tts__engine": "espeak"})


def test_it_never_replies_to_what_the_starter_hears() -> None:
    with standing_in(ollama()) as server:
        with pytest.raises(ModelNotFound) as caught:
            settled(choosing(server=str(server.port)))
        assert caught.value.hint.endswith(
            "voiceloop models pull base.en smart-turn-v3.2 en_US-joe-medium"
        )
        for named in NAMED:
            command, _ = settled(choosing(None, str(server.port), **named))
            assert command.settings.llm.engine == "openai"


def test_a_model_of_it_may_be_named(pulled: Callable[..., ModelStore]) -> None:
    pulled("mini")
    with standing_in(ollama()) as server:
        command, _ = settled(choosing(server=f"{server.port}/qwen2.5:7b"))
        assert command.settings.llm.target == "qwen2.5:7b"
        with pytest.raises(ConfigError, match="no model to chat"):
            settled(choosing(server=f"{server.port}/nomic-embed-text"))


def test_a_draft_that_a_file_names_is_left_out_and_a_flags_is_not(
    tmp_path: Path, pulled: Callable[..., ModelStore]
) -> None:
    pulled("mini")
    file = tmp_path / "config.toml"
    file.write_text('[llm]\ndraft = "ngram"\ntemperature = 0.7\n')
    with standing_in(ollama()) as server:
        command, _ = settled(choosing([file], server=str(server.port)))
        assert (command.settings.llm.draft, command.settings.llm.temperature) == ("auto", 0.7)
        command, _ = settled(choosing(server=str(server.port), llm__draft="ngram"))
        assert command.settings.llm.draft == "ngram"


ELSEWHERE = '[llm]\nengine="openai"\nbase_url="http://127.0.0.1:{}/v1"\ntarget="b"\n'
"""What "Use it" on the page keeps in the user's file."""


def test_none_takes_back_what_a_file_says_and_no_flag(
    tmp_path: Path, pulled: Callable[..., ModelStore]
) -> None:
    pulled("mini")
    file = tmp_path / "config.toml"
    with standing_in(ollama()) as there:
        file.write_text(ELSEWHERE.format(there.port) + "temperature=0.7\n")
        kept, _ = settled(choosing([file]))
    assert kept.settings.llm.target == "b" and kept.settings.asr.model == "tiny.en"
    command, _ = settled(choosing([file], server="none"))
    llm = command.settings.llm
    assert (llm.engine, llm.target, llm.base_url) == ("speculative", "smollm2-135m-instruct", "")
    assert llm.temperature == 0.7
    command, _ = settled(choosing(server="none", llm__target="mine"))
    assert command.settings.llm.target == "mine"


@pytest.mark.parametrize("preset", ["", 'preset = "mini"\n'])
def test_own_models_reply_while_a_server_that_a_file_names_does_not_answer(
    preset: str, tmp_path: Path, pulled: Callable[..., ModelStore]
) -> None:
    pulled("mini")
    file, port = tmp_path / "config.toml", free_port()
    file.write_text(preset + ELSEWHERE.format(port) + "temperature=0.7\n")
    command, told = settled(choosing([file]))
    llm = command.settings.llm
    assert (llm.engine, llm.target, llm.base_url) == ("speculative", "smollm2-135m-instruct", "")
    assert llm.temperature == 0.7 and command.settings.asr.model == "tiny.en"
    assert [line for line in told.all() if not line.startswith("preset mini")] == [
        f"127.0.0.1:{port} does not answer: start it; meanwhile smollm2-135m-instruct replies. "
        "Once it is back, the next start takes it, and the page offers it"
    ]
    assert Offers.of(command) is not None, "the page may take it again"
    assert "b" in file.read_text()
    # Whoever asks for it in this very command is told that it is not there.
    for flags in ({"llm__target": "c"}, {"llm__base_url": "http://127.0.0.1:9/v1"}):
        command, told = settled(choosing([file], **flags))
        assert command.settings.llm.engine == "openai"


def test_without_models_of_its_own_it_says_what_to_start(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(ELSEWHERE.format(free_port()))
    with pytest.raises(RequestError, match="does not answer: start it"):
        settled(choosing([file]))


def test_a_model_of_a_server_here_is_not_looked_for_among_ones_own(
    pulled: Callable[..., ModelStore],
) -> None:
    pulled("mini")
    with standing_in(ollama()) as server:
        search = begin_search([server.port])
        for name in ("llama3.2", "llama3.2:latest"):
            with pytest.raises(ModelNotFound) as caught:
                check_target(choosing(llm__target=name).settings, search)
            assert caught.value.message == f"voiceloop has no model called '{name}', and Ollama has"
            assert caught.value.hint.endswith(f"--llm-server ollama/{name}")
        for name in ("smollm2-135m-instruct", "starter", "nosuch"):
            check_target(choosing(llm__target=name).settings, search)


def test_what_runs_here_is_told_once_it_is_known_and_only_to_whoever_has_none() -> None:
    _, told = settled(choosing(preset="starter"), looks=True)
    assert told.search is not None and told.search.result(60) is not None
    for command in (choosing(preset="starter", llm__engine="openai"), choosing(server="none")):
        assert settled(command, looks=True)[1].search is None
    with standing_in(ollama()) as server:
        told = ChoiceNotice(search=begin_search([server.port]))
        assert told.all() == [
            "Ollama is running here with llama3.2 and 2 more; --llm-server ollama takes it"
        ]


def run(*argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "voiceloop", *argv],
        env=os.environ | environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("server", "named"),
    [
        ("olama", "did you mean 'ollama'?"),
        ("http://example.org/v1", "--llm.base-url URL"),
        ("{port}", "does not answer, or has no model that chats"),
    ],
)
def test_a_server_that_is_not_there_is_one_line_at_the_command_line(
    server: str, named: str, tmp_path: Path
) -> None:
    server = server.format(port=free_port())
    argv = ("serve", "--port", str(free_port()), "--llm-server", server)
    done = run(*argv, XDG_CONFIG_HOME=str(tmp_path))
    assert done.returncode == 2 and done.stdout == ""
    assert_one_line_and_a_hint(done.stderr)
    assert named in done.stderr


def test_other_commands_choose_nothing(pulled: Callable[..., ModelStore], tmp_path: Path) -> None:
    """What a recording or a benchmark gives hangs on no cache."""
    pulled("mini")
    done = run("say", "Hello.", "--out", str(tmp_path / "x.wav"), XDG_CONFIG_HOME=str(tmp_path))
    assert done.returncode == 0 and "loading espeak" in done.stderr
