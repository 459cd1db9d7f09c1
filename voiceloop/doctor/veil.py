"""Hides private texts in the doctor's output: names of the user and of the machine, and secrets.

Messages of libraries and of the system may contain anything. So every text that is known to be
private is replaced wherever it occurs. Secrets, paths and addresses in environment variables are
replaced by the name of the variable. Passwords in addresses, and all texts that look like a key,
are replaced by an ellipsis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgspec.structs import replace

from voiceloop.doctor.findings import Finding

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
"""Matches the name of an environment variable whose value is a secret."""
_SHORTEST = 4
"""Minimum length of a value that is hidden, in characters. Shorter values reveal nothing, and they
occur in many words."""
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_KEY = re.compile(r"(?<!\w)(?=\w*\d)(?=\w*[A-Za-z])\w{24,}(?!\w)")
_COMMON = {"", "/", "localhost", "127.0.0.1", "::1", "root", "user", "voiceloop"}
"""Values that are never hidden. They reveal nothing, and messages need them."""


@dataclass(frozen=True, slots=True)
class Veil:
    """A filter that replaces private texts."""

    _instead: Mapping[str, str]
    """The replacement of each private text. The keys are in lower case."""
    _private: re.Pattern[str]

    @classmethod
    def of(cls, environ: Mapping[str, str], known: Mapping[str, str]) -> Veil:
        """Make a veil that hides the private values in the environment `environ`. `known` maps
        other private texts to their replacements."""
        found = {
            private: f"${name}"
            for name, value in environ.items()
            for private in _private_in(name, value)
        }
        found |= known
        instead = {key.lower(): word for key, word in found.items() if key.lower() not in _COMMON}
        # The longest texts come first: a folder in the home folder is found before the home folder.
        longest = sorted(instead, key=len, reverse=True)
        any_of = "|".join(map(re.escape, longest)) or r"(?!)"
        # An underscore ends a name, as in `anna_models`.
        whole = rf"(?<![^\W_])(?:{any_of})(?![^\W_])"
        return cls(instead, re.compile(whole, re.IGNORECASE))

    def over(self, text: str) -> str:
        """Return `text` with its private parts replaced."""
        shown = self._private.sub(lambda match: self._instead[match[0].lower()], text)
        return _KEY.sub("…", _PASSWORD.sub("…", shown))

    def over_all(self, finding: Finding) -> Finding:
        """Return `finding` with the private parts of its texts replaced, and with each text on one
        line."""
        text, cure = (" ".join(self.over(part).split()) for part in (finding.text, finding.cure))
        return replace(finding, text=text, cure=cure)


def _private_in(name: str, value: str) -> Iterator[str]:
    """Yield the private parts in the value of an environment variable."""
    if len(value) < _SHORTEST:
        return
    if _SECRET.search(name) or "/" in value or "\\" in value:
        yield value.rstrip("/\\")
    if "://" in value:
        try:
            parts = urlsplit(value)
        except ValueError:  # not a valid address
            return
        yield from (parts.netloc, parts.hostname or "")
