"""Job control: a shell stops the process with Ctrl-Z, and continues it later."""

from __future__ import annotations

import os
import signal
import sys
from typing import Protocol

import anyio


class Pausable(Protocol):
    """An object that uses the terminal, and leaves it to the shell while the process is stopped."""

    def pause(self) -> None:
        """Stop using the terminal, and restore the state that it had before."""
        ...

    def resume(self) -> None:
        """Use the terminal again. Other programs may have written on it meanwhile."""
        ...


async def follow_job_control(*uses: Pausable) -> None:
    """Pause all `uses` of the terminal before Ctrl-Z stops the process. Resume them when the
    process continues."""
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGTSTP, signal.SIGCONT) as coming:
        async for number in coming:
            if number == signal.SIGTSTP:
                for use in uses:
                    use.pause()
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                for use in uses:
                    use.resume()
