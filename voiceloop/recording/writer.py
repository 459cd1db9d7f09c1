"""The thread that writes a recording, so that a slow disk delays no conversation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from voiceloop.recording.folder import MOST_BYTES, FullRecording, RecordingFolder

MOST_WAITING = 8192
"""Maximum number of jobs that wait to be written. About twenty seconds of a conversation make so
many."""
CLOSING_S = 5.0
"""Maximum seconds for which the end of a conversation waits for the disk."""
TOO_SLOW = "the disk is too slow"

logger = logging.getLogger(__name__)

Job = Callable[[RecordingFolder], None]


class RecordingWriter:
    """A thread that writes one recording. Jobs that are put before `start` wait."""

    def __init__(self, parent: Path, name: str, most_bytes: int = MOST_BYTES) -> None:
        """Write to a new folder in `parent`, which is made when the thread starts."""
        self.failure = ""
        """Why the recording ended before its conversation; empty if it did not. After a failure
        nothing is written any more."""
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._make = lambda: RecordingFolder(parent, name, most_bytes)
        self._thread = Thread(target=self._run, name="recording", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, job: Job) -> None:
        """Have the thread call `job` with the folder, after all earlier jobs. Never blocks. After a
        failure the job is dropped."""
        if self._jobs.qsize() >= MOST_WAITING:
            self.failure = self.failure or TOO_SLOW
        if not self.failure:
            self._jobs.put(job)

    def finish(self) -> None:
        """Write all that waits, and close the files. Blocks for `CLOSING_S` at most."""
        self._jobs.put(None)
        self._thread.join(CLOSING_S)
        if self._thread.is_alive():
            self.failure = self.failure or TOO_SLOW

    def _run(self) -> None:
        try:
            with self._make() as folder:
                while (job := self._jobs.get()) and not self.failure:
                    job(folder)
        except FullRecording:
            self.failure = "it has reached its maximum size"
        except OSError as error:
            self.failure = f"it cannot be written: {error.strerror}"
        except Exception as error:
            logger.exception("a recording has failed")
            self.failure = repr(error)
