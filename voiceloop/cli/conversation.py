"""Runs a conversation in a command: loads its engines, shows its turns, writes its trace.

Heavy modules are imported only when the conversation begins.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voiceloop import process
from voiceloop.outputs import replacing
from voiceloop.settings.config import Config, McpServer
from voiceloop.status import engine_names, loading

if TYPE_CHECKING:
    from voiceloop.audio.devices import Microphone, Speaker
    from voiceloop.cli.controls import Controls
    from voiceloop.conversations.keeping import KeptConversation
    from voiceloop.engines import Engines
    from voiceloop.types import Event, TurnTrace
    from voiceloop.view.views import LiveView, View


class TerminalConversation:
    """A conversation with loaded engines, shown in the terminal. `traces` has its past turns."""

    def __init__(
        self,
        engines: Engines,
        settings: Config,
        view: View,
        servers: Mapping[str, McpServer] | None = None,
    ) -> None:
        """The language model may call the tools of the MCP `servers`."""
        self._servers = servers or {}
        self.traces: list[TurnTrace] = []
        self.engines = engines
        """The engines of the session; they may be replaced before it runs."""
        self._settings = settings
        self._view = view
        self._end: Callable[[], None]
        """Ends the conversation; set while it runs."""
        self._unshown: OSError | None = None
        """The error that the output raised when an event was shown; None if there was none."""

    def note(self, text: str) -> None:
        """Show a notice to the user."""
        from voiceloop.types import Notice

        self._view.show(Notice(text))

    def run(
        self,
        microphone: Microphone,
        speaker: Speaker,
        *,
        full_duplex: bool,
        lasts: bool = False,
        controls: Controls | None = None,
        record: Path | None = None,
        beside: Callable[[], Coroutine[Any, Any, None]] | None = None,
        kept: KeptConversation | None = None,
        **options: Any,
    ) -> None:
        """Converse until the microphone ends. `options` are further arguments of `Session`.

        With `full_duplex` the user is heard during a reply. With `lasts`, a goodbye ends the
        conversation, and the language model is calibrated in idle time if it has no calibration.
        With `controls`, the keys of the terminal are read. With `record`, the conversation is
        recorded in a new folder within that folder. `beside` runs until the conversation ends.
        `kept` is a kept conversation to continue. Raises OSError if the output cannot be written.
        """
        import anyio

        from voiceloop.calibration.idle import cache_folder, calibrate_in_idle_time
        from voiceloop.conversations.condensing import Continuing
        from voiceloop.llm.remote.chatserver import told_to
        from voiceloop.recording.recording import Recording, Surroundings
        from voiceloop.session import Session
        from voiceloop.tools.results import room
        from voiceloop.tools.servers import equipped
        from voiceloop.tools.toolbox import Toolbox
        from voiceloop.view.keyboard import follow_job_control
        from voiceloop.view.views import LiveView

        keyboard = controls.keyboard if controls else None
        live = self._view if isinstance(self._view, LiveView) else None

        async def converse() -> None:
            own = Toolbox(most_chars=room(self._settings.llm))
            async with equipped(own, self._servers, self.note) as toolbox:
                await converse_with(toolbox)

        async def converse_with(toolbox: Toolbox) -> None:
            around, recording = Surroundings(microphone, speaker, self._show), None
            if record is not None:
                recording = Recording(record, self._settings, self.note, full_duplex=full_duplex)
                around = recording.around(around)
            goes_on: Continuing | None = None
            if kept is not None:
                goes_on = Continuing(kept, self.engines, self._settings, self.note, toolbox)
                options.update(goes_on.options(greets=lasts))
            session = Session(
                *(self.engines, around.microphone, around.speaker, self._settings, around.show),
                core=around.core,
                full_duplex=full_duplex,
                toolbox=toolbox,
                ends=lasts,
                **options,
            )
            async with (
                told_to(self.note),
                recording or nullcontext(),
                aclosing(goes_on) if goes_on else nullcontext(),
                anyio.create_task_group() as tasks,
            ):
                self._end = tasks.cancel_scope.cancel
                if lasts:
                    turns = self._settings.turns
                    tasks.start_soon(calibrate_in_idle_time, self.engines, turns, cache_folder())
                for work in filter(None, (beside, goes_on and partial(goes_on.keep, session))):
                    tasks.start_soon(work)
                if live:
                    tasks.start_soon(self._draw, live, controls)
                if controls:
                    controls.follow(session, self._show if live else None)
                if controls and keyboard:
                    tasks.start_soon(controls.obey, session, self._end)
                if live or keyboard:
                    tasks.start_soon(follow_job_control, *filter(None, (live, keyboard)))
                await session.run()
                tasks.cancel_scope.cancel()

        # Entered outside of the event loop, so that the terminal is restored whatever happens.
        with live or nullcontext(), keyboard or nullcontext():
            anyio.run(converse)
        if self._unshown:
            raise self._unshown

    def _show(self, event: Event) -> None:
        from voiceloop.types import TurnTrace

        if isinstance(event, TurnTrace):
            self.traces.append(event)
        with self._watched_output():
            self._view.show(event)

    async def _draw(self, live: LiveView, controls: Controls | None) -> None:
        """Redraw the live region at the bottom of the terminal every `REFRESH_S` seconds."""
        import anyio

        from voiceloop.view.rows import Status
        from voiceloop.view.views import REFRESH_S

        began = anyio.current_time()
        while True:
            elapsed_s = anyio.current_time() - began
            with self._watched_output():
                live.draw(controls.status(elapsed_s) if controls else Status(elapsed_s))
            await anyio.sleep(REFRESH_S)

    @contextmanager
    def _watched_output(self) -> Iterator[None]:
        """End the conversation if writing the output fails within the context.

        The program that reads the output has ended. The error is kept for `run`, since it would
        otherwise count as the failure of a turn.
        """
        try:
            yield
        except OSError as error:
            self._unshown = error
            self._end()


@contextmanager
def conversation(
    settings: Config, *, trace: Path | None, as_json: bool, timed: bool
) -> Iterator[TerminalConversation]:
    """Load the engines for a conversation and prepare its view. Write the file `trace` at the end.

    The view prints JSON if `as_json`, and shows no latencies unless `timed`. The trace is also
    written if the conversation fails after a turn, for example because a sound card was unplugged.
    """
    from voiceloop.tools.servers import configured
    from voiceloop.trace.record import to_perfetto

    servers = configured(settings.mcp)  # before the models, which take long
    failure: Exception | None = None
    with ExitStack() as stack:
        trace_file = stack.enter_context(replacing(trace)) if trace else None
        with loading(engine_names(settings), sys.stderr):
            process.configure(settings.threads)
            from rich.console import Console

            from voiceloop.assembly.loading import open_engines
            from voiceloop.view.views import open_view

            engines = stack.enter_context(process.settled(open_engines(settings)))
        console = Console(file=sys.stdout, highlight=False)
        view = open_view(console, sys.stderr, as_json=as_json, timed=timed)
        terminal = TerminalConversation(engines, settings, view, servers)
        try:
            yield terminal
        except Exception as error:
            if not terminal.traces:
                raise
            failure = error
        if trace_file:
            trace_file.write(json.dumps(to_perfetto(terminal.traces)))
    if failure:
        raise failure


def report(traces: Sequence[TurnTrace]) -> None:
    """Print a waterfall of the median turn, and percentiles of the latencies of several turns.

    Nothing is printed if no turn was answered.
    """
    from voiceloop.trace.record import Mark, endpoint_to_sound_ms, percentiles, voice_to_voice_ms
    from voiceloop.trace.waterfall import waterfall

    answered = [trace for trace in traces if voice_to_voice_ms(trace) is not None]
    if not answered:
        return
    middle = sorted(answered, key=lambda trace: voice_to_voice_ms(trace) or 0)[len(answered) // 2]
    print()
    if len(answered) > 1:
        transcripts = [
            (trace.marks[Mark.TRANSCRIPT_FINAL] - trace.marks[Mark.ENDPOINT]) * 1000
            for trace in answered
        ]
        drafted = sum(trace.counters.get("drafted", 0) for trace in answered)
        accepted = sum(trace.counters.get("accepted", 0) for trace in answered)
        for name, values in (
            ("voice to voice", [voice_to_voice_ms(trace) or 0 for trace in answered]),
            ("endpoint to final transcript", transcripts),
            ("endpoint to first sound", [endpoint_to_sound_ms(trace) or 0 for trace in answered]),
        ):
            figures = percentiles(values)
            print(f"{name:<29} p50 {figures['p50']:5.0f} ms   p95 {figures['p95']:5.0f} ms")
        share = f"{accepted / drafted:.0%}" if drafted else "none"
        print(f"{len(answered)} turns answered, draft tokens accepted: {share}; the median turn:")
        print()
    print("\n".join(waterfall(middle)))
