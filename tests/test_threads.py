"""Small work has a share of the cores, large work all, nobody waits long for more, and the user's
word counts for all of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from voiceloop.process import SPINS, available_cores

pytestmark = pytest.mark.real

CORES = available_cores()
SHARE = max(1, CORES // 2)
PROGRAM = """
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
    ("asked", "variable", "before", "expected"),
    [
        (0, None, "", (SHARE, CORES, SHARE)),
        (0, None, "import torch", (SHARE, CORES, SHARE)),
        (1, None, "", (1, 1, 1)),
        (CORES, None, "import torch", (CORES, CORES, CORES)),
        (0, "1", "", (1, 1, 1)),
        (2, "1", "import torch", (1, 1, 1)),
    ],
)
def test_threads_of_small_and_of_large_work(asked, variable, expected, before):
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    if variable is not None:
        env["OMP_NUM_THREADS"] = variable
    command = [sys.executable, "-c", f"{before}{PROGRAM}", str(asked)]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
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


def test_a_model_that_is_loaded_during_large_work_keeps_its_share():
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, "-c", BESIDE]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, told.split())) == (SHARE, CORES, CORES, SHARE)


@pytest.mark.parametrize(
    ("said", "expected"),
    [({}, SPINS), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "PASSIVE"}, None)],
)
def test_how_long_threads_wait_is_said_unless_the_user_has(said, expected):
    ours = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    env = {name: value for name, value in os.environ.items() if name not in ours} | said
    program = "from voiceloop.process import bound_threads; bound_threads(0); import os; "
    command = [sys.executable, "-c", f"{program}print(os.environ.get('GOMP_SPINCOUNT'))"]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert told.strip() == str(expected)
