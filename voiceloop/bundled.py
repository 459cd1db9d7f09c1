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
