"""Remove tokens of chat templates that servers leak into a model's text.

At the beginning of a reply, such tokens are removed with the name of the speaker after them. Later,
a token that ends a turn or begins the next one ends the reply, and any other token is removed.
Marks of calls and of thoughts are not leaks and stay in the text. `without` removes the matches of
a pattern from text that a stranger may have written. This module knows neither token ids nor
models.
"""

from __future__ import annotations

import re

from voiceloop.llm.text.parts import MARKS

_NAME = r"[\w▁]{1,40}"
_KEPT = "|".join(map(re.escape, MARKS))
_MEANT = r"[<\[]/?[|｜]?[\w▁]*(?:tool|think|thought|call|python|function|channel|message)"  # noqa: RUF001
_PLAIN = (
    r"<(?:start|end)_of_(?:turn|utterance)>|</?s>|<(?:bos|eos|pad|unk|sop|eop)>|<seed:[be]os>"
    r"|\[/?(?:INST|SYSTEM_PROMPT)\]|\[gMASK\]"
)
_TOKEN = (
    rf"(?!{_KEPT}|{_MEANT})"
    rf"(?:<\|{_NAME}\|?>|<{_NAME}\|>|<｜{_NAME}｜>|\[\|{_NAME}\|\]|{_PLAIN})"  # noqa: RUF001
)
_PART = r"<[|｜]?[\w▁]{0,40}[|｜]?|</s?|<seed:\w{0,3}|\[(?:\|[\w▁]{0,40}\|?|/?[A-Z_g]{0,13})"  # noqa: RUF001
"""A pattern of text that may become a token when more text follows."""
_ROLES = ("assistant", "model", "system", "user", "bot")
_ROLE = rf"(?:{'|'.join(_ROLES)})[ \t]*"
_SOME = "|".join(role[:n] for role in _ROLES for n in range(len(role), 0, -1))
"""A pattern of a speaker's name, or of the beginning of such a name."""

TOKEN = re.compile(_TOKEN)
LONGEST = 44
"""Maximum number of characters in a match of `TOKEN`."""
_TURNS = re.compile(
    r"(?<![a-z])(im_|eo[tmp]|end|start|begin|user|assistant|system|human|chatbot|turn|role|header"
    r"|inst\b)",
    re.IGNORECASE,
)
"""A pattern that is found only in tokens that end or begin a turn."""
_HEAD = re.compile(rf"(?:\s*{_TOKEN}(?:{_ROLE}(?=[\n<\[]|\Z))?)+\s*")
_OPEN = re.compile(
    rf"\s*(?:{_TOKEN}(?:{_ROLE}(?=[\n<\[]))?\s*)*(?:{_PART}|(?<=[>\]])(?:{_ROLE}|{_SOME}))?"
)
"""A pattern of a reply's text so far that consists only of tokens and names of speakers. The last
token or name may be incomplete."""
_LONGEST_OPENING = 1000
"""Maximum number of characters of such a text. A longer one is no longer looked at as a whole with
each piece that comes."""
_HELD = re.compile(rf"(?:{_PART})\Z")
_THOUGHT, _FINAL = "analysis", "assistantfinal"
"""What is left of the marks of gpt-oss around a thought if they were stripped: `analysisThe user …
assistantfinalHello`."""
_LONGEST_THOUGHT = 20_000
"""Maximum number of characters of such a thought."""
_BROKEN = re.compile(r"[<\[][|｜]")  # noqa: RUF001
"""A pattern of text that can only be the beginning of a token. Such text is removed if the reply
ends with it."""


class Leaks:
    """A filter that removes leaked tokens from one reply. Call `push` with each piece of the
    reply's text, then `finish` once."""

    def __init__(self) -> None:
        self.over = False
        """Whether a token has ended the reply. Text after that is ignored."""
        self._text = ""
        """Text that may still become part of a token."""
        self._begun = False

    def push(self, text: str) -> str:
        """Add `text`. Return the reply's text that has become certain, without leaked tokens."""
        if self.over or not text:
            return ""
        self._text += text
        if not self._begun:
            opens = len(self._text) <= _LONGEST_OPENING and _OPEN.fullmatch(self._text)
            if opens or self._thinks():
                return ""
            self._begin()
        return self._settle()

    def finish(self) -> str:
        """Return the rest of the reply's text. Call this at the end of the reply."""
        if not self._begun:
            self._begin()
        said, rest = self._settle(), self._text
        self._text = ""
        return said if _BROKEN.match(rest) else said + rest

    def _thinks(self) -> bool:
        """Return whether the text is, or may become, a thought without marks. Remove a thought that
        has ended."""
        text = self._text.lstrip()
        if len(text) <= len(_THOUGHT):
            return _THOUGHT.startswith(text)
        if not text.startswith(_THOUGHT) or not text[len(_THOUGHT)].isupper():
            return False
        _, ended, said = text.partition(_FINAL)
        if ended:
            self._text = said
        return not ended and len(text) < _LONGEST_THOUGHT

    def _begin(self) -> None:
        self._begun = True
        if head := _HEAD.match(self._text):
            self._text = self._text[head.end() :]

    def _settle(self) -> str:
        said = ""
        while found := TOKEN.search(self._text):
            said += self._text[: found.start()]
            self._text = self._text[found.end() :]
            if _TURNS.search(found[0]):
                self.over, self._text = True, ""
        held = _HELD.search(self._text)
        certain = held.start() if held else len(self._text)
        said, self._text = said + self._text[:certain], self._text[certain:]
        return said


def without(pattern: re.Pattern[str], text: str, longest: int) -> str:
    """Return `text` without the matches of `pattern`, which have at most `longest` characters.

    A removal may join the parts of another match, which is removed too: without the inner name,
    "<|im_<|im_end|>end|>" is another name. The work is linear in the length of `text`.
    """
    found = pattern.search(text)
    if found is None:
        return text
    kept, at = list[str](), 0
    while True:
        # The characters before `at` contain no match, so a match at the seam begins in `before`.
        before = "".join(kept[max(0, len(kept) - longest + 1) :])
        joined = pattern.search(before + text[at : at + longest - 1])
        if joined and joined.start() < len(before):
            del kept[len(kept) - len(before) + joined.start() :]
            at += joined.end() - len(before)
            continue
        found = pattern.search(text, at)
        if found is None:
            return "".join(kept) + text[at:]
        kept.extend(text[at : found.start()])
        at = found.end()
