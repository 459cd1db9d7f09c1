"""Finds the files that ship with voiceloop.

A wheel has them under `voiceloop/_bundled/`, a checkout (an editable install) at its root.
"""

from __future__ import annotations

from pathlib import Path

from voiceloop.errors import ModelNotFound

STARTER_HEARS = (
    "the starter recogniser knows synthetic voices alone and misunderstands people; "
    "for real models: voiceloop models pull cpu, then --preset cpu"
)
"""A note for users who speak to the bundled recogniser."""

STARTER_ANSWERS = (
    "the starter language model answers small questions only: sums, capitals, opposites, timers"
)
"""A note for users of the bundled language model."""
STARTER_EXAMPLES = (
    "What is the capital of France?",
    "What is 7 times 8?",
    "Who wrote Hamlet?",
    "Set a timer for 5 minutes.",
)
EXAMPLES = (
    "What can I cook with carrots and ginger?",
    "Why is the sky blue?",
    "Suggest a name for a small grey cat.",
    "How do I fall asleep faster?",
)
"""Questions to try: `STARTER_EXAMPLES` with the bundled language model, these with any other."""

_PACKAGE = Path(__file__).resolve().parent


def bundled(name: str, *, package: Path = _PACKAGE) -> Path:
    """Return the path of the file or folder that ships as `name`, such as `models/starter/asr`.

    `package` is the folder of the installed package. Raises ModelNotFound if this installation
    has nothing of that name.
    """
    inside = package / "_bundled"
    path = (inside if inside.is_dir() else package.parent) / name
    if not path.exists():
        raise ModelNotFound(
            f"this installation of voiceloop has no '{name}'",
            "install it again, or name a model of your own",
        )
    return path
