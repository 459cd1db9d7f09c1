"""Small work has a share of the cores, large work all, and the user's word counts for both."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.models

CORES = os.cpu_count() or 1
SHARE = max(1, CORES // 2)
PROGRAM = """
import sys
from voiceloop.threads import all_cores, bound_threads
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
    ("asked", "variable", "expected"),
    [
        (0, None, (SHARE, CORES, SHARE)),
        (1, None, (1, 1, 1)),
        (CORES, None, (CORES, CORES, CORES)),
        (0, "1", (1, 1, 1)),
        (2, "1", (1, 1, 1)),
    ],
)
def test_threads_of_small_and_of_large_work(asked, variable, expected):
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    if variable is not None:
        env["OMP_NUM_THREADS"] = variable
    command = [sys.executable, "-c", PROGRAM, str(asked)]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, told.split())) == expected
