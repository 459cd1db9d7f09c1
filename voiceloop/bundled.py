"""Finds the files that ship with voiceloop.

In a wheel they lie under `voiceloop/_bundled/`. In a checkout (an editable install) they lie at its
root.
"""

from __future__ import annotations

from pathlib import Path

from voiceloop.errors import ModelNotFound

STARTER_HEARS = "the starter recogniser knows synthetic voices alone and misunderstands people"
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
"""Questions that users can try with the bundled language model."""
EXAMPLES = (
    "What can I cook with carrots and ginger?",
    "Why is the sky blue?",
    "Suggest a name for a small grey cat.",
    "How do I fall asleep faster?",
)
"""Questions that users can try with any language model except the bundled one."""

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
