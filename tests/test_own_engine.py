"""The engines of docs/engines.md, built and installed as a package of somebody else's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import soundfile as sf

from voiceloop.engines import Llm, load
from voiceloop.settings.config import LlmConfig
from voiceloop.types import Past, Tool

pytestmark = pytest.mark.real

PAGE = Path(__file__, "../../docs/engines.md").resolve().read_text(encoding="utf-8")
ROOT = Path(__file__).parents[1]
BEEPER = ("--tts.engine", "beeper")
PARROT = ("--llm.engine", "parrot", "--pace", "max", "--json")
BLOCK = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the page's package is installed."""
    source, target = tmp_path_factory.mktemp("birds"), tmp_path_factory.mktemp("site")
    files = dict(BLOCK.findall(PAGE))
    assert files.keys() == {"pyproject.toml", "beeper.py", "manners.py", "parrot.py"}
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    alone = ["--no-deps", "--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run([*pip, *alone], check=True, capture_output=True)
    rest = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), *rest])}


def run(environment: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "voiceloop", *argv]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def test_it_speaks(installed: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "s.wav"
    done = run(installed, "say", "One, two: 3.", "--tts.voice", "high", "--out", str(out), *BEEPER)
    assert done.returncode == 0, done.stderr
    pcm, rate = sf.read(out)
    assert rate == 16_000 and len(pcm) == 3 * 1600  # three words of a tenth of a second
    spectrum = np.abs(np.fft.rfft(pcm[:1600]))
    assert np.argmax(spectrum) * rate / 1600 == pytest.approx(880, abs=10)


def test_it_is_listed_and_answers(installed: dict[str, str], tmp_path: Path) -> None:
    listed = run(installed, "voices", *BEEPER)
    assert listed.stdout.startswith("beeper speaks (*)")
    assert "    high\n  * low\n" in listed.stdout and "espeak" in listed.stdout
    wrong = run(installed, "voices", "--tts.voice", "middle", *BEEPER)
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[-1] == "hint: choose one of: high, low"
    demo = str(ROOT / "models/starter/demo.wav")
    asked = run(installed, "ask", demo, "--pace", "max", "--json", *BEEPER)
    assert asked.returncode == 0, asked.stderr
    assert '"outcome": "done"' in asked.stdout


def test_rules_of_turn_taking_are_found(installed: dict[str, str]) -> None:
    asked = ("ask", str(ROOT / "models/starter/demo.wav"), "--pace", "max", "--json")
    chosen = ("--turns.endpoint", "another-question", "--turns.interruption", "only-stop")
    assert '"outcome": "done"' in run(installed, *asked, *chosen).stdout
    code = """
from pathlib import Path
from msgspec.structs import replace
from tests.support.run import play
from tests.support.scenario import load_scenario
from voiceloop.dialogue.endpoint import TurnSoFar, hangover_ms
from voiceloop.languages import language
from voiceloop.settings.config import TurnConfig
turns = TurnConfig(endpoint="another-question", interruption="only-stop")
scenario = load_scenario(Path("tests/data/scenarios/barge_in.toml"))
config = replace(scenario.config, turns=turns)
print(*(trace.outcome for trace in play(replace(scenario, config=config)).traces))
print(*(hangover_ms(TurnSoFar(text, None, turns, language("en"))) for text in ("Go.", "Go?")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=installed, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.split() == ["done", "abandoned", "500", "1000"], done.stderr
    wrong = run(installed, *asked, "--turns.endpoint", "another-qestion")
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[-2:] == [
        "voiceloop: turns.endpoint: there is no rule 'another-qestion'",
        "hint: did you mean 'another-question'?",
    ]


def test_a_language_model_of_forty_lines_replies(installed: dict[str, str], tmp_path: Path) -> None:
    code = dict(BLOCK.findall(PAGE))["parrot.py"]
    assert len(code.splitlines()) <= 40
    file = tmp_path / "parrot.toml"
    file.write_text('[llm.options]\nopening = "I heard"')
    demo = str(ROOT / "models/starter/demo.wav")
    twice = ("--llm.options.repeats", "2", "--config", str(file))
    asked = run(installed, "ask", demo, *PARROT, *twice)
    assert asked.returncode == 0, asked.stderr
    turn = json.loads(asked.stdout.splitlines()[0])
    assert turn["reply"] == f"I heard {turn['transcript']} {turn['transcript']}"
    assert "llm parrot" in asked.stderr


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (
            ["--llm.options.repaets", "2"],
            "llm.options.repaets is no key",
            "did you mean 'repeats'?",
        ),
        (
            ["--llm.options.zzz", "2"],
            "llm.options.zzz is no key",
            "'parrot' takes: repeats, opening",
        ),
        (
            ["--llm.options.repeats", "no"],
            "llm.options.repeats must be an integer from 1, not 'no'",
            "'parrot' takes: repeats, opening",
        ),
        (
            ["--tts.options.pitch", "2"],
            "tts.options is set, and the engine 'espeak' has no settings of its own",
            "leave out tts.options, or set tts.engine to the engine that they are for",
        ),
    ],
)
def test_settings_of_an_engines_own_are_checked_before_anything_is_loaded(
    installed: dict[str, str], argv: list[str], message: str, hint: str
) -> None:
    wrong = run(installed, "ask", str(ROOT / "models/starter/demo.wav"), *PARROT, *argv)
    assert wrong.returncode == 2
    *_, told, hinted = wrong.stderr.splitlines()
    assert message in told and hinted == f"hint: {hint}"


def test_settings_of_an_engines_own_are_shown(installed: dict[str, str]) -> None:
    given = ("--llm.engine", "parrot", "--llm.options.repeats", "3")
    told = run(installed, "ask", "--help-all", *given).stdout
    assert "  --llm.options.repeats N  [3]\n      How often it says everything." in told
    assert "  --llm.options.opening TEXT  [You said:]" in told
    shown = run(installed, "config", *given).stdout
    assert re.search(r'^llm.options.repeats +"3" +flag$', shown, re.MULTILINE)
    file = run(installed, "config", "--toml", *given).stdout
    assert tomllib.loads(file)["llm"]["options"] == {"repeats": "3"}


@pytest.fixture
def parrot(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Llm:
    monkeypatch.syspath_prepend(installed["PYTHONPATH"].split(os.pathsep)[0])
    config = LlmConfig(engine="parrot", system="", options={"opening": "Yes:"})
    return cast(Llm, load("llm", "parrot", config))


def all_of(steps: Iterator[Any]) -> list[Any]:
    return [item for item in steps if item is not None]


def test_it_knows_what_was_heard_and_what_tools_returned(parrot: Llm) -> None:
    talk = parrot.conversation()
    assert [burst.text for burst in all_of(talk.reply("One two.", 1))] == ["Yes:", " One two."]
    assert talk.heard(2) == "Yes: One"
    clock = Tool("clock", "Tells the time.", {})
    talk.rewrite("", [Past("Hello.", ("Hi.",))], [clock])
    (call,) = all_of(talk.reply("The clock.", 2))
    assert (call.name, call.turn, call.problem) == ("clock", 2, "")
    said = all_of(talk.tool_results([(call, "noon")], 2))
    assert "".join(burst.text for burst in said) == "Yes: noon"
    assert talk.standing.exchanges == 1
    all_of(talk.prefill("And", 3))
    assert talk.standing.exchanges == 2


def test_an_interrupted_reply_is_shown_to_the_model_as_far_as_it_was_heard(parrot: Llm) -> None:
    seen: list[Any] = []
    talk = parrot.conversation()
    plain = cast(Any, parrot).reply

    def watched(messages: Any, tools: Any) -> Any:
        seen.append(messages)
        return plain(messages, tools)

    cast(Any, parrot).reply = watched
    steps = talk.reply("One two three.", 1)
    assert all_of(islice(steps, 4))
    steps.close()
    talk.heard(3)
    all_of(talk.reply("Go on", 2))
    told = [(one["role"], one["content"]) for one in seen[-1]]
    expected = [("user", "One two three."), ("assistant", "Yes: One two"), ("user", "Go on")]
    assert told == expected
