"""What belongs to the whole process: its switches, its threads, and the signals that end it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import soundfile

from tests.server.serving import BY_ITSELF, Client, free_port, until
from voiceloop.bundled import bundled
from voiceloop.process import ENVIRONMENT, SPINS, available_cores

pytestmark = pytest.mark.real

# --- switches, which only commands set, in one place ---------------------------------------------

EMBEDDED = """
import gc, os
import numpy, threadpoolctl, torch

def switches():
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
    attention = torch.backends.cuda.cudnn_sdp_enabled()
    return dict(os.environ), gc.get_freeze_count(), attention, torch.get_num_threads(), pools

before = switches()
from voiceloop.settings.config import Config
from voiceloop.assembly.loading import open_engines
with open_engines(Config()) as engines:
    reply = engines.llm.conversation().reply("Hello.", 0)
    next(reply), next(reply)
    *meanwhile, pools = switches()
    assert tuple(meanwhile) == before[:-1], (before, meanwhile)
    assert pools.items() >= before[-1].items(), (before, pools)
"""
CONFIGURED = """
import gc, os
from contextlib import nullcontext
from voiceloop.process import ENVIRONMENT, configure, settled
configure(0)
with settled(nullcontext()):
    assert gc.get_freeze_count()
assert not gc.get_freeze_count()
print(*(os.environ[name] for name in ("OMP_NUM_THREADS", *ENVIRONMENT)))
"""


def run(program: str, *words: str, **environ: str) -> str:
    """Return what `program` prints, with nothing said about threads but in `environ`."""
    names = {*ENVIRONMENT, "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}
    plain = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, env=plain | environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_that_opens_engines_stays_as_it_is() -> None:
    run(EMBEDDED)


def test_a_command_sets_what_the_user_has_not() -> None:
    said = dict.fromkeys((*ENVIRONMENT, "OMP_NUM_THREADS"), "7")
    assert run(CONFIGURED, **said).split() == ["7"] * len(said)
    threads, *others = run(CONFIGURED).split()
    assert int(threads) >= 1 and others == ["1"] * len(ENVIRONMENT)


# --- threads: small work has a share of the cores, large work all --------------------------------

CORES = available_cores()
SHARE = max(1, CORES // 2)
WORK = """
import sys
from voiceloop.process import all_cores, bound_threads
for _ in range(2):  # each engine that is loaded asks for it
    bound_threads(int(sys.argv[1]))
import torch
told = [torch.get_num_threads()]
try:
    with all_cores():
        told.append(torch.get_num_threads())
        raise KeyError
except KeyError:
    told.append(torch.get_num_threads())
print(*told)
"""


@pytest.mark.parametrize(
    ("asked", "said", "before", "expected"),
    [
        (0, {}, "", (SHARE, CORES, SHARE)),
        (0, {}, "import torch", (SHARE, CORES, SHARE)),
        (1, {}, "", (1, 1, 1)),
        (CORES, {}, "import torch", (CORES, CORES, CORES)),
        (0, {"OMP_NUM_THREADS": "1"}, "", (1, 1, 1)),
        (2, {"OMP_NUM_THREADS": "1"}, "import torch", (1, 1, 1)),
    ],
)
def test_threads_of_small_and_of_large_work(
    asked: int, said: dict[str, str], before: str, expected: tuple[int, ...]
) -> None:
    told = run(f"{before}{WORK}", str(asked), **said)
    assert tuple(map(int, told.split())) == expected


BESIDE = """
import threading
from voiceloop.process import all_cores, bound_threads, small_work
bound_threads(0)
small_work()  # without torch there is nothing to do
import torch
def load():
    torch.ones(1)
    small_work()
    told.append(torch.get_num_threads())
    with all_cores():
        told.append(torch.get_num_threads())
told = []
with all_cores():
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    told.append(torch.get_num_threads())
told.append(torch.get_num_threads())
print(*told)
"""


def test_a_model_that_is_loaded_during_large_work_keeps_its_share() -> None:
    assert tuple(map(int, run(BESIDE).split())) == (SHARE, CORES, CORES, SHARE)


@pytest.mark.parametrize(
    ("said", "expected"),
    [({}, SPINS), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "PASSIVE"}, None)],
)
def test_how_long_threads_wait_is_said_unless_the_user_has(
    said: dict[str, str], expected: str | None
) -> None:
    program = "from voiceloop.process import bound_threads; bound_threads(0); import os; "
    told = run(f"{program}print(os.environ.get('GOMP_SPINCOUNT'))", **said)
    assert told.strip() == str(expected)


# --- signals: whatever comes, and however often, is Ctrl-C ---------------------------------------

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
OTHERS = [signal.SIGTERM, signal.SIGHUP]


def deaf() -> None:
    """As what a shell runs in the background is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def hearing() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def begun(
    words: list[str], before: Callable[[], None] = hearing, folder: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The process of a command; it inherits what it ignores, were that not set anew."""
    process = subprocess.Popen(
        [sys.executable, "-u", *words],
        preexec_fn=before,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[str], beginning: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(beginning):
            return
    pytest.fail(process.communicate()[1])


# --- the signals alone --------------------------------------------------------------------------

# A signal between Python's last check and the system's call is seen only after the call, as for
# every Python program. So whatever waits outside an event loop waits for a second at a time.
WAITS = {
    "asleep": "import time\nwhile True: time.sleep(1)",
    "in a loop": "while True: pass",
    "in tasks": "import anyio; anyio.run(anyio.sleep, 60)",
    "in the middle of a task's work": (
        "import anyio\n"
        "async def work():\n"
        "    import anyio, time\n"
        "    whole = False\n"
        "    try:\n"
        "        print('begun', flush=True)\n"
        "        until = time.monotonic() + 0.5\n"
        "        while time.monotonic() < until: pass\n"
        "        whole = True\n"
        "        await anyio.sleep(60)\n"
        "    finally:\n"
        "        assert whole\n"
        "anyio.run(work)"
    ),
    "in a thread that is waited for": (
        "import threading, time\n"
        "thread = threading.Thread(target=time.sleep, args=(60,))\n"
        "thread.start()\n"
        "while True: thread.join(1)"
    ),
    "where an object goes": (
        "class Held:\n"
        "    def __del__(self):\n"
        "        import time\n"
        "        print('begun', flush=True)\n"
        "        time.sleep(1)\n"
        "held = Held()\n"
        "del held\n"
        "while True: pass"
    ),
}
PROGRAM = """
import sys
import voiceloop.cli.main as cli
from voiceloop.__main__ import main
def run(argv):
    try:
        if "begun" not in sys.argv[1]:
            print("begun", flush=True)
        exec(sys.argv[1])
    finally:
        print("tidied", flush=True)
cli._run = run
sys.exit(main())
"""


@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.parametrize("number", ENDING)
def test_each_does_what_ctrl_c_does(waits: str, number: signal.Signals) -> None:
    with begun(["-c", PROGRAM, WAITS[waits]]) as process:
        wait_for(process, "begun")
        process.send_signal(number)
        told, complaint = process.communicate(timeout=50)
    assert process.returncode == 128 + number
    assert told == "tidied\n"
    assert complaint == "voiceloop: interrupted\n"


@pytest.mark.parametrize("number", OTHERS)
def test_who_does_not_hear_ctrl_c_hears_the_others(number: signal.Signals) -> None:
    with begun(["-c", PROGRAM, WAITS["in the middle of a task's work"]], deaf) as process:
        wait_for(process, "begun")
        process.send_signal(number)
        told, complaint = process.communicate(timeout=50)
    assert (process.returncode, told) == (128 + number, "tidied\n")
    assert complaint == "voiceloop: interrupted\n"
    with begun(["-c", PROGRAM, WAITS["in tasks"]], deaf) as process:
        wait_for(process, "begun")
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(number)
        told, complaint = process.communicate(timeout=50)
    assert (process.returncode, told) == (128 + number, "tidied\n")
    assert complaint == "voiceloop: interrupted\n"


def test_what_is_to_outlive_its_terminal_does() -> None:
    def nohup() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with begun(["-c", PROGRAM, WAITS["in tasks"]], nohup) as process:
        wait_for(process, "begun")
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(50) == 143


# --- commands -----------------------------------------------------------------------------------


def asking(tmp_path: Path) -> list[str]:
    demo = str(bundled("models/starter/demo.wav"))
    return ["-m", "voiceloop", "ask", demo, "--out", "r.wav", "--trace", "t.json"]


def kept(folder: Path) -> None:
    """What `ask` wrote until it was ended, and nothing else, is there."""
    assert sorted(path.name for path in folder.iterdir()) == ["r.wav", "t.json"]
    assert soundfile.info(folder / "r.wav").samplerate == 24_000
    assert "traceEvents" in json.loads((folder / "t.json").read_text())


@pytest.mark.parametrize(("number", "before"), [*zip(OTHERS, [hearing, deaf], strict=True)])
def test_what_has_sounded_is_kept(
    tmp_path: Path, number: signal.Signals, before: Callable[[], None]
) -> None:
    with begun(asking(tmp_path), before, tmp_path) as process:
        wait_for(process, "you")
        process.send_signal(number)
        rest, complaint = process.communicate(timeout=50)
    assert process.returncode == 128 + number
    assert "interrupted: the files hold what had sounded" in rest
    assert "Traceback" not in complaint
    kept(tmp_path)


@pytest.mark.parametrize("number", ENDING)
def test_of_a_command_that_loads_nothing_is_left(tmp_path: Path, number: signal.Signals) -> None:
    with begun(asking(tmp_path), folder=tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.read(9) == "voiceloop"  # which loads …
        process.send_signal(number)
        process.send_signal(number)
        _, complaint = process.communicate(timeout=50)
    assert process.returncode == 128 + number
    assert "Traceback" not in complaint
    assert not list(tmp_path.iterdir())


def test_a_window_that_is_closed_leaves_the_files(tmp_path: Path) -> None:
    terminal, theirs = pty.openpty()
    program = "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    program += "from voiceloop.__main__ import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *asking(tmp_path)[2:]],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )
    os.close(theirs)
    shown = b""
    while b"speaking" not in shown:
        shown += os.read(terminal, 1024)
    os.close(terminal)
    assert process.wait(50) == 129
    kept(tmp_path)


def test_who_is_in_no_turn_leaves_at_once_and_who_is_at_its_end() -> None:
    port = free_port()
    words = ["-m", "voiceloop", "serve", "--port", str(port), *BY_ITSELF]
    with begun([*words, "--server.drain-s", "40"]) as process:
        wait_for(process, "listening")
        url = f"ws://localhost:{port}/v1/realtime"
        with Client(url) as idle, Client(url) as client:
            idle.wait("session.created")
            client.create("Why is the sky blue?")
            client.send("response.create")
            client.wait("response.output_audio.delta")
            process.send_signal(signal.SIGTERM)
            until(lambda: idle.socket.close_code == 1001)
            assert not client.all("response.done") and client.socket.close_code is None
            assert client.wait("response.done")["response"]["status"] == "completed"
            until(lambda: client.socket.close_code == 1001)
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("first", "second"), [*((one, None) for one in ENDING), (signal.SIGTERM, signal.SIGTERM)]
)
def test_a_server_lets_its_reply_end_unless_it_is_told_twice(
    first: signal.Signals, second: signal.Signals | None
) -> None:
    port = free_port()
    words = ["-m", "voiceloop", "serve", "--port", str(port), *BY_ITSELF]
    with begun(words) as process:
        wait_for(process, "listening")
        with Client(f"ws://localhost:{port}/v1/realtime") as client:
            client.create("Why is the sky blue?")
            client.send("response.create")
            client.wait("response.output_audio.delta")
            process.send_signal(first)
            assert process.stderr is not None
            for line in process.stderr:
                if '"ending"' in line:
                    break
            if second is None:
                assert client.wait("response.done")["response"]["status"] == "completed"
            else:
                process.send_signal(second)
            _, complaint = process.communicate(timeout=50)
            if second is not None:
                assert not client.all("response.done")
    assert process.returncode == (0 if second is None else 128 + second)
    assert "Traceback" not in complaint
