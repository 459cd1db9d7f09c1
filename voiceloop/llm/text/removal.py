"""Remove the matches of a pattern from text that a stranger may have written."""

from __future__ import annotations

import re


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
