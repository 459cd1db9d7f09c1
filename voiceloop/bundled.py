"""Where the files that ship with voiceloop lie.

In a wheel they are under `voiceloop/_bundled/`; a checkout (an editable install) has them at its
root. This module does not know what is in them.
"""

from __future__ import annotations

from pathlib import Path

from voiceloop.errors import ModelNotFound

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
