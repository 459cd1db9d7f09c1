"""What all tests share: the layers, the virtual clock, and what a machine may lack.

Nothing here fakes a part of voiceloop: scripted engines are in tests/support.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests.support.clock import VirtualClock

ORDER = ("audio", "browser", "real", "models", "gpu", "virtual", "pure")
"""The layers of tests. Those that wait most come first, and short ones last."""
LAYERS = set(ORDER)
CARD = "tests/card"
"""The tests of the virtual sound card. Two at once would leave gaps in each other's sound."""

# Set before anything imports a hub client: tests get their models from the checkout.
os.environ["HF_HUB_OFFLINE"] = "1"
# And before torch: one thread gives the same sums everywhere, and small models lose by sharing.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# A busy machine is no defect, so examples have no deadline; CI runs the same ones every time.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("dev"), max_examples=15)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure() -> None:
    """Let the commands that tests begin hear signals: a shell's background jobs ignore Ctrl-C, and
    what nohup runs ignores SIGHUP, as do all that they begin."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """Run three processes on two cores: for two fifths of their time, tests wait. With four, tests
    of other programs, such as a server of llama.cpp, fail now and then."""
    return (os.cpu_count() or 1) * 3 // 2


class Scheduler(LoadFileScheduling):
    """Gives the tests of each file to one process, and those of the sound card to one as well."""

    def _split_scope(self, nodeid: str) -> str:
        return CARD if nodeid.startswith(f"{CARD}/") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    """Let the files be begun in the order in which they are collected."""
    config.option.loadscopereorder = False
    return Scheduler(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse test modules that do not say which layer they belong to. Begin with the sound card,
    and end with what is short."""
    items.sort(key=_rank)
    bare = {item.path.name for item in items if not LAYERS & {m.name for m in item.iter_markers()}}
    if bare:
        raise pytest.UsageError(
            f"no layer is marked in {', '.join(sorted(bare))}; write near the top: "
            f"pytestmark = pytest.mark.pure (or {', '.join(sorted(LAYERS - {'pure'}))})"
        )


def pytest_collection_finish() -> None:
    """Spare the garbage collector the thousands of tests, which live until the end."""
    gc.collect()
    gc.freeze()


def _rank(item: pytest.Item) -> int:
    marks = {mark.name for mark in item.iter_markers()}
    return next((at for at, layer in enumerate(ORDER) if layer in marks), 0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is not promised of the shell that servers of tests run under. Take back what an
    earlier test has set for the whole process: more threads give other sums, and take longer."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    for mark in item.iter_markers("not_over"):
        if os.environ.get("VOICELOOP_TEST_SHELL") in mark.args:
            pytest.skip(mark.kwargs["why"])


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Asynchronous tests run on a virtual clock, where waiting takes no time."""
    return "asyncio", {"loop_factory": VirtualClock().loop}


def lacking(reason: str) -> NoReturn:
    """Skip the test for what this machine lacks; in CI, where nothing may be lacking, fail."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def require_program() -> Callable[[str], Path]:
    """Call it with the name of a program that the test runs; it returns its path."""

    def require(name: str) -> Path:
        path = shutil.which(name)
        if path is None:
            lacking(f"the program {name} is not installed (make test says how)")
        return Path(path)

    return require


@pytest.fixture(scope="session")
def speech() -> Path:
    """The folder of human recordings, which are not part of the project: without it, tests skip."""
    folder = os.environ.get("VOICELOOP_SPEECH")
    if not folder:
        pytest.skip("VOICELOOP_SPEECH names no folder of human recordings")
    return Path(folder)


NOBODY = 65_534


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of the user that the test runs as; not as root, who may write everywhere."""
    with tempfile.TemporaryDirectory() as name:
        root = os.geteuid() == 0
        if root:
            os.chown(name, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, 0)  # what may be done is asked for the real user
        try:
            yield Path(name)
        finally:
            if root:
                os.setresuid(0, 0, 0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 200 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted on Linux by root alone")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="session")
def mcp_package() -> None:
    """The official package for MCP servers."""
    if find_spec("mcp") is None:
        lacking("the package mcp is not installed (extra mcp)")


@pytest.fixture(scope="session")
def parallel_pack() -> None:
    """The package of several replies, as it is found by its entry point."""
    if not entry_points(group="voiceloop.hook"):
        lacking("the package voiceloop-parallel is not installed")
