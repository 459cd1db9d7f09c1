"""Where the files that ship with voiceloop lie.

In a wheel they are under `voiceloop/_bundled/`; a checkout (an editable install) has them at its
root.
"""

from __future__ import annotations

from pathlib import Path

from voiceloop.errors import ModelNotFound

STARTER_HEARS = (
    "the starter recogniser knows synthetic voices alone and misunderstands people; "
    "for real models: voiceloop models pull cpu, then --preset cpu"
)
"""What whoever speaks to the bundled recogniser is to know."""

STARTER_ANSWERS = (
    "the starter language model answers small questions only: sums, capitals, opposites, timers"
)
"""What whoever is answered by the bundled language model is to know."""
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
"""What to ask the one language model, and any other."""

_PACKAGE = Path(__file__).resolve().parent


def bundled(name: str, *, package: Path = _PACKAGE) -> Path:
    """The file or folder that ships as `name`, such as `models/starter/asr`.

    `package` is the folder of the installed package. Raises ModelNotFound where nothing of that
    name was shipped.
    """
    inside = package / "_bundled"
    path = (inside if inside.is_dir() else package.parent) / name
    if not path.exists():
        raise ModelNotFound(
            f"this installation of voiceloop has no '{name}'",
            "install it again, or name a model of your own",
        )
    return path
