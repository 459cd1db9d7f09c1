"""Spoken requests that a draft is trained on, and what the user says after the reply.

The requests come from the forms and words in a bundled file, or from a user's file with one request
on each line. Every run with the same requests holds out the same dialogues.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voiceloop.errors import ConfigError

HELD_OUT = 100
"""Number of dialogues that are not used for training. Acceptance is measured on them."""
FEWEST = 2 * HELD_OUT
"""Minimum number of requests in a user's file."""
LONGEST = 2_000
"""Maximum number of characters in a request."""
LARGEST = 64 * 2**20
"""Maximum number of bytes in a file of requests."""

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Dialogues:
    """The user's words in each dialogue, in one or two turns."""

    training: tuple[tuple[str, ...], ...]
    held_out: tuple[tuple[str, ...], ...]


def dialogues(prompts: Path | None) -> Dialogues:
    """Return the bundled dialogues, or those in the file `prompts`, in the same order in every run.

    Raises ConfigError for a file that cannot be read or holds too few requests.
    """
    bundled = tomllib.loads(Path(__file__).with_name("requests.toml").read_text(encoding="utf-8"))
    if prompts is None:
        requests = sorted(
            {text for form in bundled["forms"] for text in _filled(form, bundled["words"])}
        )
    else:
        requests = _own(prompts)
    rng = random.Random(0)
    rng.shuffle(requests)
    held_out = tuple((text,) for text in requests[:HELD_OUT])
    requests = requests[HELD_OUT:]
    if prompts is None:
        again = requests[: len(requests) // 2]
        requests += [_begun(text, rng.choice(bundled["openers"])) for text in again]
        rng.shuffle(requests)
    training = [
        (text, rng.choice(bundled["follow_ups"])) if number % 2 else (text,)
        for number, text in enumerate(requests)
    ]
    return Dialogues(tuple(training), held_out)


def _begun(text: str, opener: str) -> str:
    """Put the request `text` into `opener`, in place of `{}`. If the request continues a sentence
    of the opener, its first letter becomes small, except in the word I."""
    if opener.endswith((". {}", "! {}")) or text.startswith(("I ", "I'")):
        return opener.format(text)
    return opener.format(text[0].lower() + text[1:])


def _filled(form: str, words: dict[str, list[str]]) -> list[str]:
    """Return one text for each word in the form's first list. Each text also gets one word from
    each of the form's other lists."""
    names = _PLACE.findall(form)
    first = words[names[0]]
    filled = [form.replace(f"{{{names[0]}}}", word, 1) for word in first]
    for name in names[1:]:
        beside = words[name]
        filled = [
            text.replace(f"{{{name}}}", beside[(7 * at + 3) % len(beside)], 1)
            for at, text in enumerate(filled)
        ]
    return filled


def _own(path: Path) -> list[str]:
    hint = "give a text file with one request on each line"
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"{path} is larger than {LARGEST >> 20} MiB", hint)
        lines: Sequence[str] = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text", hint) from error
    requests = sorted({" ".join(line.split()) for line in lines} - {""})
    if too_long := [text for text in requests if len(text) > LONGEST]:
        raise ConfigError(
            f"{path} has a request of {len(too_long[0])} characters; {LONGEST} are the most", hint
        )
    if len(requests) < FEWEST:
        raise ConfigError(
            f"{path} has {len(requests)} different requests; {FEWEST} are the fewest to learn from",
            f"{hint}; {HELD_OUT} of them are held out to measure by",
        )
    return requests
