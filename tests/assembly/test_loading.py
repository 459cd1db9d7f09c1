"""Loading: what it does to the process that it is done in."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
import soundfile

from voiceloop.asr.whisper_model import check_recogniser
from voiceloop.assembly import loading
from voiceloop.assembly.loading import open_engines
from voiceloop.assembly.planning import check_memory
from voiceloop.bundled import bundled
from voiceloop.errors import ConfigError, ModelNotFound
from voiceloop.placement import MemoryPart
from voiceloop.process import available_cores
from voiceloop.settings.config import AsrConfig, Config, LlmConfig, TtsConfig
from voiceloop.types import Pcm

pytestmark = pytest.mark.real

SILENCES = ("ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI", "GITHUB_ACTIONS", "TF_BUILD")
"""What keeps ONNX Runtime from reporting its use."""
COUNTS = """
from threadpoolctl import ThreadpoolController
from voiceloop.settings.config import Config
from voiceloop.assembly.loading import load_asr
from voiceloop.process import configure

configure(0)
load_asr(Config())
for pool in ThreadpoolController().info():
    print(pool["user_api"], pool["num_threads"])
"""


def test_nothing_spins_beside_the_models() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")}
    told = subprocess.run(
        [sys.executable, "-c", COUNTS], env=environment, capture_output=True, text=True, check=True
    )
    counts = dict(line.split() for line in told.stdout.splitlines())
    most = max(1, available_cores() // 2)
    assert counts["blas"] == "1", "numpy's products wait for each other"
    assert int(counts.get("openmp", "1")) <= most


IMPORTED = """
import sys
from voiceloop.settings.config import Config
from voiceloop.assembly.loading import open_engines
from voiceloop.types import Pcm

with open_engines(Config()):
    print(*{name.split(".")[0] for name in sys.modules})
"""


def test_a_plain_language_model_imports_no_transformers() -> None:
    told = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    assert {"torch", "ctranslate2", "tokenizers"} <= {*told.stdout.split()}
    assert "transformers" not in told.stdout.split()


def test_a_voice_that_there_is_not_is_told_before_anything_is_loaded() -> None:
    wrong = Config(llm=LlmConfig(engine="nosuch"), tts=TtsConfig(voice="nosuch"))
    with pytest.raises(ConfigError, match="no voice called 'nosuch'"), open_engines(wrong):
        pass


@pytest.mark.parametrize("language", ["xx", "de", "english", ""])
def test_a_language_that_a_model_does_not_know_is_told_before_anything_is_loaded(
    language: str,
) -> None:
    wrong = Config(llm=LlmConfig(engine="nosuch"), asr=AsrConfig(language=language))
    with pytest.raises(ConfigError, match="does not know the language"), open_engines(wrong):
        pass


@pytest.mark.parametrize(
    ("tokens", "language", "known"),
    [
        (51_865, "de", True),
        (51_866, "auto", True),
        (51_865, "xx", False),
        (51_864, "de", False),  # the tokens of languages are there, and mean nothing
        (51_864, "en", True),
        (0, "de", True),  # nobody can tell yet
    ],
)
@pytest.mark.parametrize("name", ["vocabulary.txt", "vocabulary.json"])
def test_the_languages_of_a_model_are_told_by_its_tokens(
    tokens: int, language: str, known: bool, name: str, tmp_path: Path
) -> None:
    every = ["<|en|>", "<|de|>", *(f"token{number}" for number in range(tokens - 2))][:tokens]
    listed = json.dumps(every) if name.endswith("json") else "".join(f"{one}\n" for one in every)
    if tokens:
        (tmp_path / name).write_text(listed)
    (tmp_path / "model.bin").touch()
    asr = AsrConfig(model=str(tmp_path), language=language)
    with nullcontext() if known else pytest.raises(ConfigError):
        check_recogniser(asr)


@pytest.mark.parametrize("option", ["--vad.engine", "--turns.sound", "--llm.engine"])
def test_an_engine_that_there_is_not_is_told_before_another_is_loaded(
    option: str, tmp_path: Path
) -> None:
    plug_in(tmp_path, "stuck", STUCK, "[voiceloop.asr]", "stuck = stuck:stuck")
    demo = str(bundled("models/starter/demo.wav"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "ask", demo, "--asr.engine", "stuck", option, "nosuch"],
        env=os.environ | {"PYTHONPATH": path_with(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and "called 'nosuch'" in done.stderr
    assert "stuck" not in done.stdout


def test_the_error_of_an_engine_is_raised_once_all_have_ended() -> None:
    missing, before = Config(asr=AsrConfig(model="/nowhere/at-all")), set(threading.enumerate())
    frozen = gc.get_freeze_count()
    with pytest.raises(ModelNotFound, match="/nowhere/at-all"), open_engines(missing):
        pass
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("voiceloop")]
    assert gc.get_freeze_count() <= frozen


ON_THREADS = """
import threading, time, sys
import anyio
import numpy as np
from voiceloop.settings.config import Config, VadConfig, TtsConfig
from voiceloop.assembly.loading import open_engines
from voiceloop.types import Pcm

on = {}

class Vad:
    frame = 512
    def __init__(self, config):
        on["vad"] = {threading.get_ident()}
    def probability(self, pcm):
        on["vad"].add(threading.get_ident())
        time.sleep(0.003)
        return 0.0
    def reset(self):
        pass

class Tts:
    name, rate, voice = "recorded", 16_000, "one"
    def __init__(self, config):
        on["tts"] = {threading.get_ident()}
    def synthesize(self, clause, voice=None, speed=1.0):
        on["tts"].add(threading.get_ident())
        yield None

async def where(runner):
    return await runner.call(threading.get_ident)

def check():
    config = Config(vad=VadConfig(engine="slow"), tts=TtsConfig(engine="recorded"))
    with open_engines(config) as engines:
        assert on["tts"] == {anyio.run(where, engines.tts_runner)}
        assert len(on["vad"] | on["tts"] | {threading.get_ident()}) == 3
        assert on["vad"] == {anyio.run(where, engines.vad_runner)}
        assert engines.vad_runner not in engines.runners
"""


def test_each_engine_is_loaded_and_warmed_up_on_the_thread_that_runs_it(tmp_path: Path) -> None:
    points = ["[voiceloop.vad]", "slow = threads:Vad", "[voiceloop.tts]", "recorded = threads:Tts"]
    plug_in(tmp_path, "threads", ON_THREADS, *points)
    told = subprocess.run(
        [sys.executable, "-c", "import threads; threads.check()"],
        env=os.environ | {"PYTHONPATH": path_with(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(("takes_ms", "apart"), [(0.2, False), (0.9, False), (1.1, True)])
def test_voice_activity_detection_that_is_quick_needs_no_thread(
    monkeypatch: pytest.MonkeyPatch, takes_ms: float, apart: bool
) -> None:
    now = 0.0

    class Timed:
        frame = 512

        def probability(self, pcm: Pcm) -> float:
            nonlocal now
            now += takes_ms / 1000
            return 0.0

        def reset(self) -> None:
            pass

    monkeypatch.setattr(loading, "perf_counter", lambda: now)
    with open_engines(Config(), {"vad": lambda config: Timed()}) as engines:
        assert (engines.vad_runner is not None) == apart


def plug_in(folder: Path, name: str, text: str, *points: str) -> None:
    """A package with engines, as if it were installed in `folder`."""
    (folder / f"{name}.py").write_text(text)
    package = folder / f"{name}-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (package / "entry_points.txt").write_text("\n".join(points) + "\n")


def path_with(folder: Path) -> str:
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


LARGE = """
from voiceloop.placement import MemoryPart

def footprint(config, device):
    yield MemoryPart(f"a voice on {device}", 7)

def large(config):
    raise AssertionError("only its size is asked for")
"""


def test_what_an_engine_says_that_it_takes_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug_in(tmp_path, "large", LARGE, "[voiceloop.tts]", "large = large:large")
    monkeypatch.syspath_prepend(tmp_path)
    config = Config(llm=LlmConfig(device="cpu"), tts=TtsConfig(engine="large"))
    assert MemoryPart("a voice on cpu", 7) in check_memory(config).parts


STUCK = """
import threading

def stuck(config):
    print("stuck", flush=True)
    threading.Event().wait()
"""


def test_nothing_that_is_loaded_keeps_a_record_to_send(tmp_path: Path) -> None:
    program = "from voiceloop.settings.config import Config\n"
    program += "from voiceloop.assembly.loading import open_engines\n"
    program += "from voiceloop.process import configure; configure(0)\n"
    program += "with open_engines(Config()): pass"
    environment = {key: value for key, value in os.environ.items() if key not in SILENCES}
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", program], env=environment | home, check=True)
    assert not [path for path in tmp_path.rglob("*") if "Microsoft" in path.parts]


# Where the tests run in the background Ctrl-C is ignored, and processes inherit that.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from voiceloop.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_waits_for_nothing_that_is_being_loaded(tmp_path: Path) -> None:
    plug_in(tmp_path, "stuck", STUCK, "[voiceloop.asr]", "stuck = stuck:stuck")
    demo = str(bundled("models/starter/demo.wav"))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "ask", demo, "--asr.engine", "stuck"],
        env=os.environ | {"PYTHONPATH": path_with(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stuck\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert told.splitlines() == [
        "voiceloop: loading stuck, llm starter, espeak …",
        "voiceloop: interrupted",
    ]
    assert process.returncode == 130


def test_the_engines_speak_and_hear_and_leave_no_thread() -> None:
    before = set(threading.enumerate())
    with open_engines(Config()) as engines:
        names = {thread.name for thread in threading.enumerate()}
        assert {"voiceloop-asr", "voiceloop-llm", "voiceloop-tts"} <= names
        assert engines.llm.conversation().standing.tokens_read == 0
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("voiceloop")]


def test_ctrl_c_keeps_what_has_sounded_by_then(tmp_path: Path) -> None:
    demo = str(bundled("models/starter/demo.wav"))
    out, trace = tmp_path / "reply.wav", tmp_path / "trace.json"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "ask", demo, "--out", str(out), "--trace", str(trace)],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("you"):
                break
        time.sleep(1)  # the reply takes seven
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate()
    assert process.returncode == 130
    assert (
        "interrupted: the files hold what had sounded and the turns that were over" in rest
        and "Traceback" not in told
    )
    assert soundfile.info(out).frames > 0
    assert "traceEvents" in json.loads(trace.read_text())
