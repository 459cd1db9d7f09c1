"""Ctrl-C is one line, or none, whenever it comes: never a traceback, never a wait.

The moments are reached by code, not by waiting: an import, a finalizer, the end of the interpreter.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doctor import dying
from tests.doctor.test_examine import told
from tests.recordings import record
from tests.support.scenario import load_scenario

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send"),
]

HEADER = """
import atexit, importlib.abc, os, signal, sys, threading, time
from pathlib import Path
# Where the tests run in the background Ctrl-C is ignored, and processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

def press():
    os.kill(os.getpid(), signal.SIGINT)

class At(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == MODULE:
            sys.meta_path.remove(self)
            moment()

class Finalized:
    def __del__(self):
        press()
        for _ in range(1000):
            pass

"""
FOOTER = """
sys.meta_path.insert(0, At())
from voiceloop.__main__ import main
sys.exit(main())
"""
COMMANDS = {"config": ["config"], "models": ["models", "list"]}
SCENARIO = Path(__file__).parent / "data" / "scenarios" / "barge_in.toml"
LINE = "voiceloop: interrupted\n"


def pressed(moment: str, module: str, words: list[str], first: str = "") -> tuple[int, str]:
    """Status and stderr of a command where `moment` is run as `module` is imported, and `first`
    before anything."""
    code = f"{HEADER}{first}\nMODULE = {module!r}\ndef moment():\n    {moment}\n{FOOTER}"
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "module", ["voiceloop.cli.main", "voiceloop.settings.config", "voiceloop.cli.manual"]
)
@pytest.mark.parametrize(
    "moment",
    [
        "press()",
        "press(); press()",
        # Python drops what a finalizer raises.
        "Finalized(); time.sleep(60)",
        # What neither ends nor can be ended is not waited for.
        "threading.Thread(target=time.sleep, args=[60]).start(); press()",
        "threading.Thread(target=time.sleep, args=[60], daemon=True).start(); press()",
    ],
)
def test_it_is_one_line_while_something_is_imported(module: str, moment: str) -> None:
    assert pressed(moment, module, ["config"]) == (128 + signal.SIGINT, LINE)


def test_it_is_one_line_before_signals_are_handled() -> None:
    assert pressed("press()", "voiceloop.process", ["config"]) == (128 + signal.SIGINT, LINE)


@pytest.mark.parametrize("command", [*COMMANDS, "replay"])
def test_it_ends_what_is_at_its_end_without_a_word(command: str, tmp_path: Path) -> None:
    made = record(tmp_path, load_scenario(SCENARIO))
    words = COMMANDS.get(command, ["replay", str(made.folder)])
    registered = "atexit.register(lambda: (press(), time.sleep(60)))"
    ended = pressed(registered, "voiceloop.settings.config", words)
    assert ended == (-signal.SIGINT, "")


def test_a_shell_that_has_a_command_ignore_it_is_obeyed_to_the_end() -> None:
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    often = "atexit.register(press); press()"
    assert pressed(often, "voiceloop.settings.config", ["config"], ignored) == (0, "")


def test_the_processes_of_the_doctor_do_not_hear_it() -> None:
    assert [one.text for one in told(dying.interrupted)] == ["goes on"]


def test_a_process_that_was_deaf_ends_in_silence() -> None:
    code = (
        "import os, signal, subprocess, sys\n"
        "from voiceloop.process import *\n"
        "child = 'import os, signal; os.kill(os.getpid(), signal.SIGINT); print(1, flush=True);'\n"
        "child += 'from voiceloop.process import *; end_in_silence(); print(2)'\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with deaf_to_ctrl_c():\n"
        "    done = subprocess.run([sys.executable, '-c', child], capture_output=True, text=True)\n"
        "assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        "print(done.returncode, done.stdout.split(), done.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == f"{-signal.SIGINT} ['1'] ", done.stderr
