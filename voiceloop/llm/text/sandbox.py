"""Render chat templates in a process of its own.

`rendering` starts this file as a program. It reads requests from its standard input and writes
answers to its standard output, a line of JSON each. Templates come from anyone who publishes a
model, so they are not trusted: a template sees only its arguments, this process may take only so
much memory, and whoever waits for it may end it. It imports nothing of voiceloop.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, ClassVar, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

LARGEST = 4_000_000
"""Maximum number of characters of a rendered dialogue."""
MEMORY = 512 << 20
"""Maximum number of bytes of addresses that this process may use. Only Linux has such a limit."""
TOO_LARGE = "it makes something that is too large"


class _Generation(Extension):
    """The tag `generation`, which marks text to train a model on. Here the text is rendered like
    any other text."""

    tags: ClassVar = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the nodes between `generation` and `endgeneration`."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def serve() -> None:
    """Answer each request, a template and its variables, with a text and why there is none. Without
    variables, only compile the template."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin.buffer:
        sys.stdout.write(f"{json.dumps(rendered(*json.loads(line)))}\n")
        sys.stdout.flush()


def rendered(text: str, variables: dict[str, Any] | None) -> tuple[str, str]:
    """Return what the template `text` makes of `variables`, and an empty text. If there is nothing,
    return an empty text and the first line of the reason."""
    try:
        template = _compiled(text)
        made = "" if variables is None else template.render(variables)
    except MemoryError:
        return "", TOO_LARGE
    except Exception as error:  # a template may divide by zero, or call itself for ever
        return "", str(error).strip().partition("\n")[0] or type(error).__name__
    return ("", TOO_LARGE) if len(made) > LARGEST else (made, "")


@lru_cache(8)
def _compiled(text: str) -> Template:
    """Compile a template with the settings of transformers."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
    )
    environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
    environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
    return environment.from_string(text)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


if __name__ == "__main__":
    serve()
