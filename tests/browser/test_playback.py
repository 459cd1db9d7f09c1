"""The assistant's voice: what sounds is what was sent, sample by sample, while it may."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open, Visit
from tests.browser.standin import RATE, Client, Pcm16, StandIn, item_id

pytestmark = pytest.mark.browser

FADE = 120
FRAME = RATE // 50
ITEM = item_id(1)


def noise(seconds: float, seed: int = 0) -> Pcm16:
    """Sound of which every sample is known, and none is zero."""
    drawn = np.random.default_rng(seed).integers(500, 8000, round(seconds * RATE))
    return (drawn * np.random.default_rng(seed + 1).choice([-1, 1], len(drawn))).astype(np.int16)


def sounding(opened: Visit) -> tuple[np.ndarray, np.ndarray]:
    """The samples that were heard, as 16 bits, and when each was."""
    pcm, frames = opened.recorded()
    audible = pcm != 0
    return np.round(pcm[audible] * 32768).astype(int), frames[audible]


def say_whole(client: Client, item: str, pcm: Pcm16) -> None:
    """Sound of which nothing is heard before all is there: on a busy machine it cannot run dry."""
    client.say(item, pcm[:FRAME])  # not enough to begin with
    client.send("voiceloop.output.paused", item_id=item)
    client.say(item, pcm[FRAME:], FRAME, frame=FRAME)
    client.send("voiceloop.output.resumed", item_id=item)


def reply_whole(client: Client, item: str, text: str, pcm: Pcm16) -> None:
    """A reply whose sound cannot run dry."""
    client.send("response.created", response={"id": "resp_1"})
    client.text(item, text)
    say_whole(client, item, pcm)
    client.send("response.output_audio.done", item_id=item)
    client.send("response.output_audio_transcript.done", item_id=item, transcript=text)
    client.send("response.done", response={"id": "resp_1", "status": "completed", "output": []})


def silent(opened: Visit) -> None:
    """Wait until nothing has sounded for half a second."""
    opened.until("tap.context.currentTime * 24000 - tap.blocks.at(-1).frame > 12e3")


def heard_to_the_end(client: Client, item: str, pcm: Pcm16) -> None:
    last = len(pcm) * 1000 / RATE
    client.until(
        lambda: {"type": "voiceloop.played", "item_id": item, "audio_ms": last} in client.events,
        "not heard to its end",
    )


@pytest.fixture
def talking(visit: Open, server: StandIn) -> tuple[Visit, Client]:
    opened = visit()
    opened.talk()
    return opened, server.client()


def test_what_is_sent_is_what_sounds(talking: tuple[Visit, Client]) -> None:
    opened, client = talking
    pcm = noise(1.234)
    reply_whole(client, ITEM, "Noise.", pcm)
    heard_to_the_end(client, ITEM, pcm)
    samples, frames = sounding(opened)
    assert np.array_equal(samples, pcm)
    assert np.array_equal(np.diff(frames), np.ones(len(pcm) - 1))


def test_frames_that_come_twice_or_late_change_nothing(talking: tuple[Visit, Client]) -> None:
    opened, client = talking
    pcm = noise(0.5)
    client.say(ITEM, pcm[:FRAME])
    client.send("voiceloop.output.paused", item_id=ITEM)
    client.say(ITEM, pcm[:6000])
    client.say(ITEM, pcm[2400:6000], 2400, frame=FRAME)
    client.say(ITEM, pcm[5900:], 5900)
    client.send("voiceloop.output.resumed", item_id=ITEM)
    client.send("response.output_audio.done", item_id=ITEM)
    client.say(ITEM, pcm, frame=FRAME)
    heard_to_the_end(client, ITEM, pcm)
    assert np.array_equal(sounding(opened)[0], pcm)


def test_two_replies_sound_one_after_the_other(talking: tuple[Visit, Client]) -> None:
    opened, client = talking
    first, second = noise(0.3), noise(0.3, seed=7)
    client.reply(ITEM, "One.", first)
    client.reply(item_id(2), "Two.", second)
    heard_to_the_end(client, item_id(2), second)
    assert np.array_equal(sounding(opened)[0], np.concatenate([first, second]))


def test_reports_of_what_was_heard_are_exact(talking: tuple[Visit, Client]) -> None:
    _, client = talking
    pcm = noise(1.5001)
    reply_whole(client, ITEM, "Noise.", pcm)
    heard_to_the_end(client, ITEM, pcm)
    reports = [event["audio_ms"] for event in client.of("voiceloop.played")]
    assert reports == sorted(set(reports))
    assert reports[-1] == len(pcm) * 1000 / RATE
    # Every 100 ms, counted in blocks of 128 samples.
    steps = np.diff(reports[:-1])
    assert len(steps) >= 10
    assert steps.min() >= 100 and steps.max() <= 112


def test_an_interruption_silences_it_within_100_ms_and_for_good(
    talking: tuple[Visit, Client],
) -> None:
    opened, client = talking
    client.send("response.created", response={"id": "resp_1"})
    client.text(ITEM, "This is a long reply that nobody wants to hear.")
    say_whole(client, ITEM, noise(4.0))
    opened.sounds(0.5)
    opened.phase("Speaking")
    client.send("input_audio_buffer.speech_started", item_id="user", audio_start_ms=0)
    # What was under way when the server noticed.
    client.say(ITEM, noise(1.0), 4 * RATE)
    opened.phase("Hearing you")
    opened.page.locator(".aside").wait_for()
    client.reply(item_id(2), "Yes?", noise(0.2, seed=9))
    heard_to_the_end(client, item_id(2), noise(0.2))
    samples, frames = sounding(opened)
    first = len(samples) - RATE // 5
    assert np.array_equal(samples[first:], noise(0.2, seed=9))
    told = opened.page.evaluate("tap.events['input_audio_buffer.speech_started']")
    assert frames[first - 1] - told < RATE / 10
    # It falls silent softly, after exactly what was sent.
    assert np.array_equal(samples[: first - FADE], noise(4.0)[: first - FADE])
    assert abs(samples[first - 1]) <= 8000 / FADE


def test_pause_and_resume_lose_no_sample(talking: tuple[Visit, Client]) -> None:
    opened, client = talking
    pcm = noise(2.0)
    reply_whole(client, ITEM, "Noise.", pcm)
    opened.sounds(0.4)
    client.send("voiceloop.output.paused", item_id=ITEM)
    opened.phase("Waiting for you")
    silent(opened)
    paused = client.of("voiceloop.played")[-1]["audio_ms"]
    client.send("voiceloop.output.resumed", item_id=ITEM)
    opened.phase("Speaking")
    heard_to_the_end(client, ITEM, pcm)
    exact, frames = opened.recorded()
    steps = np.diff(frames)
    gap = int(np.argmax(steps)) + 1
    # Within a block the fade ends in zeros; what fades out and what fades in are one sound.
    before = np.trim_zeros(exact[:gap], "b")
    at = len(before) - FADE
    after = exact[gap:]
    after = np.trim_zeros(after)
    joined = np.concatenate([before[:at], before[at:] + after[:FADE], after[FADE:]])
    assert np.abs(joined * 32768 - pcm).max() < 0.01
    assert paused <= at * 1000 / RATE


def test_a_pause_is_reported_at_once_and_to_the_sample(talking: tuple[Visit, Client]) -> None:
    opened, client = talking
    say_whole(client, ITEM, noise(3.0))
    opened.sounds(0.3)
    client.send("voiceloop.output.paused", item_id=ITEM)
    opened.phase("Waiting for you")
    silent(opened)  # the last report comes once the speaker has nothing left
    before = np.trim_zeros(opened.recorded()[0], "b")
    position = len(before) - FADE
    client.until(
        lambda: client.of("voiceloop.played")[-1]["audio_ms"] == position * 1000 / RATE,
        f"not reported: {position * 1000 / RATE} ms",
    )
    # Whoever pauses wants to know, even where it is no news.
    reports = len(client.of("voiceloop.played"))
    client.send("voiceloop.output.paused", item_id=ITEM)
    client.wait("voiceloop.played", reports + 1)


def test_a_queue_that_runs_dry_is_counted_and_goes_on_without_a_loss(
    talking: tuple[Visit, Client],
) -> None:
    opened, client = talking
    pcm = noise(0.8)
    say_whole(client, ITEM, pcm[:4800])
    client.until(
        lambda: [event["audio_ms"] for event in client.of("voiceloop.played")][-1:] == [195],
        "not heard up to the last 5 ms",
    )
    client.say(ITEM, pcm[4800:], 4800)
    expect(opened.page.locator("#latency-dry")).to_contain_text("The sound broke off once,")
    client.send("response.output_audio.done", item_id=ITEM)
    heard_to_the_end(client, ITEM, pcm)
    exact, frames = opened.recorded()
    gap = int(np.argmax(np.diff(frames))) + 1
    before, after = np.trim_zeros(exact[:gap], "b"), np.trim_zeros(exact[gap:])
    assert len(before) == 4800
    joined = np.concatenate([before[:-FADE], before[-FADE:] + after[:FADE], after[FADE:]])
    assert np.abs(joined * 32768 - pcm).max() < 0.01


def test_a_reply_whose_end_is_told_late_has_not_run_dry(talking: tuple[Visit, Client]) -> None:
    opened, client = talking
    pcm = noise(0.5)
    client.send("response.created", response={"id": "resp_1"})
    say_whole(client, ITEM, pcm)
    client.until(
        lambda: [event["audio_ms"] for event in client.of("voiceloop.played")][-1:] == [495],
        "not heard up to the last 5 ms",
    )
    opened.phase("Speaking")
    client.send("response.output_audio.done", item_id=ITEM)
    client.send("response.done", response={"id": "resp_1", "status": "completed", "output": []})
    heard_to_the_end(client, ITEM, pcm)
    opened.phase("Listening")
    expect(opened.page.locator("#latency-dry")).to_be_empty()


def test_escape_stops_the_reply_and_tells_the_server_where(talking: tuple[Visit, Client]) -> None:
    opened, client = talking
    client.send("response.created", response={"id": "resp_1"})
    client.text(ITEM, "On and on and on.")
    say_whole(client, ITEM, noise(4.0))
    opened.sounds(0.3)
    opened.page.keyboard.press("Escape")
    client.wait("response.cancel")
    client.say(ITEM, noise(1.0), 4 * RATE)
    # A message can be truncated once it is whole.
    assert not client.of("conversation.item.truncate")
    client.send("response.done", response={"id": "resp_1", "status": "cancelled", "output": []})
    cut = client.wait("conversation.item.truncate")
    assert cut["item_id"] == ITEM and cut["content_index"] == 0
    opened.phase("Listening")
    samples, _ = sounding(opened)
    assert cut["audio_end_ms"] == (len(samples) - FADE) * 1000 // RATE
    opened.page.keyboard.press("Escape")  # nothing to stop: nothing is sent
    client.reply(item_id(2), "Good.", noise(0.2))
    heard_to_the_end(client, item_id(2), noise(0.2))
    assert len(client.of("response.cancel")) == 1
    assert len(client.of("conversation.item.truncate")) == 1


def test_a_reply_that_is_cancelled_before_it_sounds_stays_silent(
    talking: tuple[Visit, Client],
) -> None:
    opened, client = talking
    client.send("response.created", response={"id": "resp_1"})
    opened.phase("Thinking")
    opened.page.get_by_role("button", name="Stop").click()
    client.wait("response.cancel")
    client.say(ITEM, noise(0.5))
    client.send("response.done", response={"id": "resp_1", "status": "cancelled", "output": []})
    client.reply(item_id(2), "Good.", noise(0.2))
    heard_to_the_end(client, item_id(2), noise(0.2))
    assert np.array_equal(sounding(opened)[0], noise(0.2))
