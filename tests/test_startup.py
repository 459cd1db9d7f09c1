"""What is set for a whole process is set by commands alone, and by them in one place."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from voiceloop.process import ENVIRONMENT

pytestmark = pytest.mark.real

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


def run(program: str, **environ: str) -> str:
    names = {*ENVIRONMENT, "OMP_NUM_THREADS", "GOMP_SPINCOUNT"}
    plain = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", program], env=plain | environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_that_opens_engines_stays_as_it_is() -> None:
    run(EMBEDDED)


def test_a_command_sets_what_the_user_has_not() -> None:
    said = dict.fromkeys((*ENVIRONMENT, "OMP_NUM_THREADS"), "7")
    assert run(CONFIGURED, **said).split() == ["7"] * len(said)
    threads, *others = run(CONFIGURED).split()
    assert int(threads) >= 1 and others == ["1"] * len(ENVIRONMENT)
