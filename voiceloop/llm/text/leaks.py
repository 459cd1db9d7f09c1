"""Tokens of chat templates that servers leak into what a model says.

Those that end a turn, or begin the next, end the reply, once anything has been said; at its
beginning they are left out with the name of who speaks, and so is any other token anywhere. Marks
of calls and of thoughts are no leaks, and pass. This module knows neither tokens' ids nor models.
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
"""What may become a token."""
_ROLES = ("assistant", "model", "system", "user", "bot")
_ROLE = rf"(?:{'|'.join(_ROLES)})[ \t]*"
_SOME = "|".join(role[:n] for role in _ROLES for n in range(len(role), 0, -1))
"""What may become the name of who speaks."""

TOKEN = re.compile(_TOKEN)
_TURNS = re.compile(
    r"(?<![a-z])(im_|eo[tmp]|end|start|begin|user|assistant|system|human|chatbot|turn|role|header"
    r"|inst\b)",
    re.IGNORECASE,
)
"""In the names of tokens that end a turn or begin one."""
_HEAD = re.compile(rf"(?:\s*{_TOKEN}(?:{_ROLE}(?=[\n<\[]|\Z))?)+\s*")
_OPEN = re.compile(
    rf"\s*(?:{_TOKEN}(?:{_ROLE}(?=[\n<\[]))?\s*)*(?:{_PART}|(?<=[>\]])(?:{_ROLE}|{_SOME}))?"
)
"""A beginning that may go on with tokens."""
_HELD = re.compile(rf"(?:{_PART})\Z")
_BROKEN = re.compile(r"[<\[][|｜]")  # noqa: RUF001
"""Begins what is a token at a reply's end, even where that is missing."""


class Leaks:
    """Leaves the tokens out of one reply. `push` its text, then `finish` it once."""

    def __init__(self) -> None:
        self.over = False
        """The reply has ended, whatever follows."""
        self._text = ""
        """What is not certain yet."""
        self._begun = False

    def push(self, text: str) -> str:
        """What has become certain once `text` has followed."""
        if self.over or not text:
            return ""
        self._text += text
        if not self._begun:
            if _OPEN.fullmatch(self._text):
                return ""
            self._begin()
        return self._settle()

    def finish(self) -> str:
        """What is left at the end of the reply."""
        if not self._begun:
            self._begin()
        said, rest = self._settle(), self._text
        self._text = ""
        return said if _BROKEN.match(rest) else said + rest

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
