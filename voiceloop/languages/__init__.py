"""Everything that voiceloop knows about single languages.

For a language without a pack there is `Language(code)`: only silence ends its turns, and the
synthesizer gets numbers and signs as they are written.
"""

from voiceloop.languages.language import AUTO, Language, bare, installed, language, missing

__all__ = ["AUTO", "Language", "bare", "installed", "language", "missing"]
