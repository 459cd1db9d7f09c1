"""Job control: a shell stops the process with Ctrl-Z, and continues it later."""

from __future__ import annotations

import os
import signal
import sys
from typing import Protocol

import anyio


class Pausable(Protocol):
    """A use of the terminal that leaves it to the shell while the process is stopped."""

    def pause(self) -> None:
        """Leave the terminal as it was found."""
        ...

    def resume(self) -> None:
        """Use the terminal again, on which others may have written."""
        ...


async def follow_job_control(*uses: Pausable) -> None:
    """Pause all uses of the terminal before Ctrl-Z stops the process, and resume them after."""
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
