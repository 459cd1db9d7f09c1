"""Opening voiceloop in a program leaves the program's process as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from voiceloop.bundled import bundled

pytestmark = pytest.mark.real

SURVEY = """
import asyncio, faulthandler, gc, json, locale, logging, os, random, signal, sys, threading
import warnings

def changed_by(before, now):
    return [name for name in before if before[name] != now[name]]

def state():
    umask = os.umask(0)
    os.umask(umask)
    found = {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "umask": umask,
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "signals": {one: signal.getsignal(one) for one in signal.valid_signals()},
        "faults": faulthandler.is_enabled(),
        "path": (list(sys.path), list(sys.meta_path)),
        "locale": locale.setlocale(locale.LC_ALL),
        "loop policy": asyncio.get_event_loop_policy(),
        "exception handler": asyncio.get_running_loop().get_exception_handler(),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook, sys.displayhook),
        "tracing": (sys.gettrace(), sys.getprofile()),
        "garbage": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), len(gc.callbacks)),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "limits": (sys.getswitchinterval(), sys.getrecursionlimit()),
        "random": random.getstate(),
        "logging": (logging.root.level, logging.root.manager.disable, logging.getLoggerClass()),
        "handlers": [list(logging.getLogger(one).handlers) for one in ("", "voiceloop")],
        "levels": [logging.getLogger(one).level for one in ("voiceloop", "asyncio")],
    }
    if LIBRARIES:
        import numpy, torch
        found |= {
            "warnings": list(warnings.filters),
            "threads of torch": torch.get_num_threads(),
            "types of torch": (torch.get_default_dtype(), torch.get_default_device()),
            "modes of torch": (torch.is_grad_enabled(), torch.get_float32_matmul_precision()),
            "noise": (torch.random.get_rng_state().tolist(), str(numpy.random.get_state())),
            "errors of numpy": numpy.geterr(),
        }
    return found

def files():
    links = {}
    for one in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            links[one] = os.readlink(f"/proc/self/fd/{one}")
        except OSError:
            pass
    return links

LIBRARIES = len(sys.argv) > 2
if LIBRARIES:
    import ctranslate2, numpy, onnxruntime, soundfile, torch, transformers
from pathlib import Path
import voiceloop

async def main():
    before, opened = state(), files()
    async with voiceloop.open() as loop:
        within = state()
        turn = await loop.ask(sys.argv[1])
        async with loop.talk(Path(sys.argv[1])) as talk:
            talk.say("Hello.")
            async for event in talk:
                if isinstance(event, voiceloop.TurnOver):
                    break
    left = [one for one, where in files().items() if opened.get(one) != where]
    threads = [one.name for one in threading.enumerate() if one.name.startswith("voiceloop")]
    return [changed_by(before, within), changed_by(before, state()), left, threads, turn.reply]

found = asyncio.run(main())
for thread in threading.enumerate():  # those of the event loop end with it
    if thread is not threading.main_thread():
        thread.join(30)
print(json.dumps([*found, len(threading.enumerate())]))
"""


@pytest.mark.parametrize("libraries", [False, True])
def test_nothing_of_the_process_is_changed(libraries: bool) -> None:
    """What libraries change when they are imported is theirs: here they are there before or not."""
    left_out = ("OMP_NUM_THREADS", "ORT_DISABLE_TELEMETRY")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    words = [str(bundled("models/starter/demo.wav")), *(["libraries"] if libraries else [])]
    done = subprocess.run(
        [sys.executable, "-c", SURVEY, *words], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    within, after, files, threads, reply, alive = json.loads(done.stdout)
    assert reply
    assert (within, after) == ([], [])
    assert files == [] and threads == []
    assert alive == 1
    assert done.stderr == ""
