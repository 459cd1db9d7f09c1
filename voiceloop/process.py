"""Sets up the process of a command: its thread counts, its signals and its child processes.

Only commands do this. A program that uses voiceloop as a library sets up its process itself. To get
the same setup, it calls `configure` before it imports torch or onnxruntime.
"""

from __future__ import annotations

import gc
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock
from types import FrameType
from typing import Any, NoReturn, TypeVar

from voiceloop.terminal import tell

VARIABLE = "OMP_NUM_THREADS"
SPINS = "30000"
"""Number of times that an idle thread of GNU's OpenMP looks for work before it sleeps.

That takes 1.5 ms on an Intel Xeon and some tenths of a millisecond elsewhere, longer than the time
between two steps of a model. The default is ten times that number, and would block a core that the
next step may need.
"""

# The models of a conversation compute at the same time, mostly in small pieces whose threads wait
# for each other. If each model used every core, they would hold each other up. Large pieces mostly
# come while the other models wait for the result, so they get all cores.
_share, _all = 0, 0
"""Threads for small work and for large work. Both are 0 before `bound_threads`, and if the user has
set `OMP_NUM_THREADS`."""
_working = 0
"""Number of models that compute at this moment."""
_counting = Lock()


def available_cores() -> int:
    """Return the number of cores that this process may use, or of all cores if unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def bound_threads(threads: int) -> None:
    """Limit the threads of torch, ctranslate2 and onnxruntime before any of them is imported.

    Each library gets `threads` threads. If `threads` is 0, each gets half of the cores, and large
    work of torch and llama.cpp may take all cores. Without this call each library would take every
    core. If the user has set OMP_NUM_THREADS or OMP_WAIT_POLICY, that value stays.
    """
    global _share, _all
    import numpy as np  # noqa: F401 -- loads OpenBLAS, whose pool is limited below
    from threadpoolctl import ThreadpoolController

    cores = available_cores()
    if VARIABLE not in os.environ:
        _share, _all = threads or max(1, cores // 2), threads or cores
        os.environ[VARIABLE] = str(_share)
        small_work()  # a torch imported earlier has read the old value
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    # Matrix products of numpy are small here: more threads would only spin between them.
    ThreadpoolController().select(internal_api="openblas").limit(limits=1)


def small_work() -> None:
    """Let torch use only the share for small work on this thread from now on, if it is imported.

    By default torch on a new thread takes the number that any thread has set last. That would be
    all cores while another thread is in `all_cores`.
    """
    if _share and "torch" in sys.modules:
        import torch

        torch.set_num_threads(_share)


@contextmanager
def at_work() -> Iterator[None]:
    """Count a model as computing while the context lasts."""
    global _working
    with _counting:
        _working += 1
    try:
        yield
    finally:
        with _counting:
            _working -= 1


def free_threads() -> int:
    """Return how many threads a model should use now: the number for large work minus the threads
    of the other models that compute at this moment.

    A model whose threads wait for each other many times in a pass calls this before each pass. If
    two of them shared a core, all would wait until the system switches between the two.
    """
    if not _all:
        return int(os.environ.get(VARIABLE, 0)) or available_cores()
    return threads_left(_share, _all, _working)


def threads_left(share: int, most: int, working: int) -> int:
    """Return how many of `most` threads one of `working` models gets, if each other model keeps
    `share` threads; at least `share`."""
    return max(share, most - share * max(0, working - 1))


@contextmanager
def all_cores() -> Iterator[None]:
    """Let torch use all cores on this thread while the context lasts.

    Passes of many rows gain by it.
    """
    import torch

    share = torch.get_num_threads()
    if share >= _all:
        yield
        return
    torch.set_num_threads(_all)
    try:
        yield
    finally:
        torch.set_num_threads(share)


ENDING = tuple(
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__  # Windows has no SIGHUP
)

AGAIN_S = 0.01
"""Seconds after which a KeyboardInterrupt is raised again, if Python dropped it in a `__del__`."""
INTERRUPTED = "voiceloop: interrupted"
"""The message of an interrupted command."""

_came = [signal.SIGINT]
"""Received signals, the newest last; SIGINT stands for a KeyboardInterrupt without a signal."""


@contextmanager
def all_like_ctrl_c() -> Iterator[None]:
    """Treat each signal of `ENDING` as Ctrl-C while the context lasts.

    Signals that have a handler or are ignored stay so: `nohup` ignores SIGHUP, and shells ignore
    Ctrl-C for background jobs. Outside of the main thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.getsignal(one) for one in ENDING}
    ignored = before[signal.SIGINT] is signal.SIG_IGN and hasattr(signal, "pthread_sigmask")
    if ignored:
        # Event loops handle SIGINT only if it is not ignored, and the other signals use its
        # handler. So SIGINT is blocked instead.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for one, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(one, _interrupt)
    hook, sys.unraisablehook = sys.unraisablehook, _unraised
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for one, handler in before.items():
            if handler is not None:  # None is a handler of C code, which Python cannot restore
                signal.signal(one, handler)
        if ignored:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def leave() -> NoReturn:
    """End the process at once, with a message and the exit status of the signal.

    A normal exit would wait for threads that load models, or abort if one is importing a library.
    After another signal than Ctrl-C, it might also have the exit status of Ctrl-C.
    """
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    with suppress(OSError):  # the terminal or the reader may be gone
        tell(INTERRUPTED, sys.stderr)
        sys.stdout.flush()
    os._exit(exit_status())


def note_signal(number: int) -> None:
    """Record a signal that the caller handles."""
    _came.append(signal.Signals(number))
    if _came[-1].name == "SIGHUP":
        _let_go_of_terminal()


def exit_status() -> int:
    """Return the exit status of a command that the last signal ended: 128 + its number."""
    return 128 + _came[-1]


def _interrupt(number: int, frame: FrameType | None) -> None:
    note_signal(number)
    handler: Any = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)


def _unraised(what: sys.UnraisableHookArgs) -> None:
    """Handle an exception that Python cannot raise, e.g. in a `__del__`, as `sys.unraisablehook`.

    If it is a KeyboardInterrupt, its signal is sent again after `AGAIN_S` seconds.
    """
    if isinstance(what.exc_value, KeyboardInterrupt):
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), _came[-1])).start()
    else:
        sys.__unraisablehook__(what)


def _let_go_of_terminal() -> None:
    """Redirect the standard streams of a closed terminal to the null device.

    Otherwise writing to them would fail.
    """
    for descriptor in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Block Ctrl-C while the caller starts processes of multiprocessing in this context.

    The new processes inherit the block, so Ctrl-C does not reach them even while their Python
    starts. The caller has to end them. A Ctrl-C that the caller gets meanwhile arrives when the
    context ends.
    """
    if os.name == "nt":
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # otherwise it would start within the context and unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_in_silence() -> None:
    """Let Ctrl-C end this child process without a message, even if it was sent while blocked.

    A process that was started within `deaf_to_ctrl_c` calls this.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.name != "nt":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


T = TypeVar("T")

ENVIRONMENT = {
    # `engines` sets this variable during its imports, but other code may import it earlier.
    "ORT_DISABLE_TELEMETRY": "1",
    # On some GPUs torch prefers cuDNN's attention, which plans anew for each length.
    "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1",
}


def configure(threads: int) -> None:
    """Set environment variables and thread counts for the libraries that compute.

    `threads` is the setting of that name. Variables that the user has set stay.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    bound_threads(threads)


@contextmanager
def settled(opened: AbstractContextManager[T]) -> Iterator[T]:
    """Enter `opened`, and exclude all objects that exist then from garbage collection.

    These objects are many, and they live long. Scanning them would stop all threads for 0.1 s or
    more. After the end of the context they may be collected again.
    """
    with opened as made:
        gc.collect()
        gc.freeze()
        try:
            yield made
        finally:
            gc.unfreeze()
