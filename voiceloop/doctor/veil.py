"""What keeps private things out of what is printed: whose machine it is, and what is secret there.

Texts of libraries and of the system may hold anything. What is known to be private is replaced
wherever it stands, values of the environment that are secrets, paths or addresses by the name of
their variable; so are passwords in addresses, and whatever looks like a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgspec.structs import replace

from voiceloop.doctor.findings import Finding

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
"""In the name of a variable whose value nobody is to see."""
_SHORTEST = 4
"""A value of the environment with fewer characters tells nothing, and would be found everywhere."""
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_KEY = re.compile(r"(?<!\w)(?=\w*\d)(?=\w*[A-Za-z])\w{24,}(?!\w)")
_COMMON = {"", "/", "localhost", "127.0.0.1", "::1", "root", "user", "voiceloop"}
"""What tells nothing, though it is somebody's name, and what is printed may need."""


@dataclass(frozen=True, slots=True)
class Veil:
    """Replaces what is private in texts."""

    _instead: Mapping[str, str]
    """By what is private, in small letters."""
    _private: re.Pattern[str]

    @classmethod
    def of(cls, environ: Mapping[str, str], known: Mapping[str, str]) -> Veil:
        """One for this environment; `known` says what else is private, and what stands for it."""
        found = {
            private: f"${name}"
            for name, value in environ.items()
            for private in _private_in(name, value)
        }
        found |= known
        instead = {key.lower(): word for key, word in found.items() if key.lower() not in _COMMON}
        # The longest first: a folder in the home folder is told as what it is.
        longest = sorted(instead, key=len, reverse=True)
        any_of = "|".join(map(re.escape, longest)) or r"(?!)"
        # An underscore ends a name, as in `anna_models`.
        whole = rf"(?<![^\W_])(?:{any_of})(?![^\W_])"
        return cls(instead, re.compile(whole, re.IGNORECASE))

    def over(self, text: str) -> str:
        """`text` without what is private."""
        shown = self._private.sub(lambda match: self._instead[match[0].lower()], text)
        return _KEY.sub("…", _PASSWORD.sub("…", shown))

    def over_all(self, finding: Finding) -> Finding:
        """A finding without what is private, each of its texts on one line."""
        text, cure = (" ".join(self.over(part).split()) for part in (finding.text, finding.cure))
        return replace(finding, text=text, cure=cure)


def _private_in(name: str, value: str) -> Iterator[str]:
    """What of a variable's value is private, if anything is."""
    if len(value) < _SHORTEST:
        return
    if _SECRET.search(name) or "/" in value or "\\" in value:
        yield value.rstrip("/\\")
    if "://" in value:
        try:
            parts = urlsplit(value)
        except ValueError:  # no address after all
            return
        yield from (parts.netloc, parts.hostname or "")
