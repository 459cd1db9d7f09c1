"""Writes docs/images/*.png: the browser demo as it looks, in front of a scripted server.

`python -m tools.screenshots` needs Playwright and a Chromium (VOICELOOP_CHROMIUM names one).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import chromium
from tests.browser.standin import RATE, Client, Pcm16, item_id, standing_in
from voiceloop.audio import Resampler, to_pcm16
from voiceloop.bundled import bundled

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
LARGEST = 200_000

TURNS = (
    ("What is the capital of Norway?", "The capital of Norway is Oslo.", (186, 9, 1, 2, 3)),
    (
        "Set a timer for ten minutes.",
        "Ten minutes, starting now.",
        (212, 14, 31, 4, 3),
    ),
)
QUESTION = "Why is the sky blue?"
ANSWER = (
    "Sunlight is a mix of all colors. The air scatters blue light much more than red light. "
    "So blue comes to us from every part of the sky."
)
HEARD = "Sunlight is a mix of all colors. The air scatters"
PARTS = ("endpoint wait", "asr", "llm", "tts", "output")
OWNERS = ("turns", "asr", "llm", "tts", "devices")


def speech() -> Pcm16:
    """Something spoken, at the rate of the wire, without the silence around it."""
    audio, rate = soundfile.read(bundled("models/starter/demo.wav"), dtype="float32")
    resampler = Resampler(rate, RATE)
    pcm = to_pcm16(
        np.concatenate([resampler.feed(np.asarray(audio, np.float32)), resampler.flush()])
    )
    loud = np.flatnonzero(np.abs(pcm) > 300)
    return pcm[loud[0] : loud[-1] + RATE // 8]


def microphone_sound() -> Pcm16:
    """A question, the next one when its answer sounds, and a room that is never quite silent."""
    room = np.random.default_rng(0).normal(0, 12, 9 * RATE)
    for seconds in (1.0, 6.5):
        at = round(seconds * RATE)
        room[at : at + len(speech())] += speech()
    return room.astype(np.int16)


def trace(ms: tuple[int, ...], outcome: str = "done", heard: str = "") -> dict[str, object]:
    """A trace as the server sends it."""
    rows = zip(PARTS, ms, OWNERS, strict=True)
    return {
        "turn": 1,
        "outcome": outcome,
        "heard": heard,
        "voice_to_voice_ms": sum(ms),
        "endpoint_to_sound_ms": sum(ms[1:]),
        "parts": [{"name": name, "ms": part, "owner": owner} for name, part, owner in rows],
        "counters": {"drafted": 31, "accepted": 30},
    }


def idle(page: Page, client: Client) -> None:
    """Nobody has said anything yet."""


def talking(page: Page, client: Client) -> None:
    """Two turns are over, and the answer to a third sounds."""
    page.get_by_role("button", name="Start talking").click()
    page.mouse.move(0, 0)
    for number, (question, answer, ms) in enumerate(TURNS):
        asked, answered = item_id(2 * number), item_id(2 * number + 1)
        completed(client, asked, question)
        client.text(answered, answer, answered)
        client.send("response.output_audio_transcript.done", item_id=answered, transcript=answer)
        client.send("voiceloop.trace", response_id=answered, item_id=asked, trace=trace(ms))
    client.until(lambda: len(client.frames) > 150, "no microphone")
    completed(client, item_id(8), QUESTION)
    client.send("response.created", response={"id": "resp_1"})
    client.text(item_id(9), ANSWER, "resp_1")
    client.say(item_id(9), np.concatenate([speech()] * 5))
    client.until(
        lambda: any(event["audio_ms"] > 3300 for event in client.of("voiceloop.played")),
        "nothing sounds",
    )


def interrupted(page: Page, client: Client) -> None:
    """The user has cut the answer off and asks something else."""
    talking(page, client)
    client.send("input_audio_buffer.speech_started", item_id=item_id(10), audio_start_ms=0)
    ended = client.of("voiceloop.played")[-1]["audio_ms"]
    client.send("conversation.item.truncated", item_id=item_id(9), audio_end_ms=ended)
    client.send(
        "voiceloop.trace",
        response_id="resp_1",
        item_id=item_id(8),
        trace=trace((198, 1, 0, 0, 5), "interrupted", HEARD),
    )
    client.send(
        "voiceloop.transcript",
        item_id=item_id(10),
        committed="and why is it red",
        tentative="at sun",
    )
    page.wait_for_timeout(900)


def completed(client: Client, item: str, text: str) -> None:
    """The user has said this."""
    kind = "conversation.item.input_audio_transcription.completed"
    client.send(kind, item_id=item, content_index=0, transcript=text)


SCENES: dict[str, Callable[[Page, Client], None]] = {
    "idle": idle,
    "talking": talking,
    "interrupted": interrupted,
}
SHOTS = [
    *((scene, scheme, WIDE, "") for scene in SCENES for scheme in ("light", "dark")),
    ("interrupted", "light", PHONE, "-phone"),
    ("talking", "dark", PHONE, "-phone"),
]


def main() -> None:
    """Take every picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        microphone = Path(folder) / "microphone.wav"
        soundfile.write(microphone, microphone_sound(), RATE)
        flags = [
            "--no-sandbox",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-audio-capture={microphone}",
        ]
        for scene, scheme, size, suffix in SHOTS:
            browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
            context = browser.new_context(
                viewport=size,  # pyright: ignore[reportArgumentType]
                color_scheme=scheme,  # pyright: ignore[reportArgumentType]
                device_scale_factor=1.5,
                is_mobile=size == PHONE,
                has_touch=size == PHONE,
            )
            context.grant_permissions(["microphone"])
            page = context.new_page()
            with standing_in() as server:
                page.goto(server.url)
                client = server.client()
                client.wait("session.update")
                SCENES[scene](page, client)
                path = FOLDER / f"{scene}-{scheme}{suffix}.png"
                page.screenshot(path=path, animations="disabled")
                browser.close()
            assert path.stat().st_size <= LARGEST, f"{path} has {path.stat().st_size} bytes"


if __name__ == "__main__":
    main()
