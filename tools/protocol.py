"""Write docs/protocol.md from voiceloop/wire/; `make docs` runs it, a test checks it."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any, get_args, get_origin

from msgspec import NODEFAULT, UNSET

from voiceloop.settings import schema
from voiceloop.settings.config import ServerConfig
from voiceloop.wire import (
    client_events,
    items,
    ledger,
    parsing,
    responses,
    server_events,
    settings,
)
from voiceloop.wire.items import plain
from voiceloop.wire.server_events import ServerEvent

INTRODUCTION = f"""\
# The protocol

<!-- Written by `make docs` from voiceloop/wire/: change it there. -->

`voiceloop serve` speaks OpenAI's Realtime protocol over a websocket at `/v1/realtime`, in its
version of general availability. Clients of that API, such as the `openai` package, need only
another address. So do LiveKit Agents (its plug-in `openai`), Pipecat (`OpenAIRealtimeLLMService`)
and OpenAI's Agents SDK for Python and Node: `make clients` runs a conversation with each. This page
lists every event and key that voiceloop reads or writes.

- A text message is one event: a JSON object of at most {parsing.MAX_CHARACTERS:,} characters,
  {parsing.MAX_VALUES:,} values and {parsing.MAX_DEPTH} levels of nesting.
- Each event of a client may have an `event_id`, a text of at most 512 characters. An error about
  the event repeats it. Each event of the server has one.
- Audio is PCM16 at {items.RATE:,} Hz, or G.711 at 8,000 Hz, in whole samples. Each direction has
  its own format, in `audio.input` and `audio.output`. A change applies to the audio that is
  appended after the update, and to the responses that begin after it. In JSON audio is in base64.
- A binary message from the client is audio, as in `input_audio_buffer.append`.
- In a session with `binary_audio`, binary messages from the server replace
  `response.output_audio.delta`. Each begins with {server_events.FRAME_HEADER.size} bytes: the \
item's id, {items.LENGTH} characters of ASCII, and
  the index of the first sample within the item, a 32-bit integer with its lowest byte first. Audio
  follows. (Every id that the server makes has {items.LENGTH} characters.)
- Milliseconds count audio: {ledger.PER_MS} samples of PCM16 each, or 8 of G.711.
- A request that cannot be fulfilled is refused by an `error` that names the parameter, and the
  session continues. The other changes of a `session.update` are made, also the other entries of
  `tools`, and `session.updated` has the result; any other event is refused as a whole. Unknown keys
  are refused too. Some keys that only tune are accepted without effect: each object lists them.
- If a key may be absent but not null, null means the same as no key.
- `response.create` answers the conversation as it stands: the user's words that have no answer
  yet, and the outputs of calls. If there is neither, it answers notes of the system, or nothing, as
  for a greeting or another answer.
- A session of type `transcription`, as at `/v1/realtime?intent=transcription`, reports only the
  user's words: it has the events of the input audio and of its items. `response.create` is refused,
  and the language model has no work. `semantic_vad` uses the words alone there.
- A conversation has at most {ledger.MAX_ITEMS:,} items and \
{ServerConfig().conversation_bytes // 2**20} MiB. Beyond that the oldest audio is
  dropped, and then the oldest items, each with a `conversation.item.deleted`.
- `rate_limits.updated` is never sent, but messages are limited: see [limits](server.md#limits).
  After the error `rate_limit_exceeded` a client should send less for a while.
"""
EXTENSIONS = """\
Everything that a session can request here is off until it is requested in `session.update`. So
clients that do not know it are not affected:

```json
{"type": "session.update", "session": {"type": "realtime", "voiceloop": {"pause": true}}}
```
"""
CLIENT = list(client_events.CLIENT_EVENTS.values())
SERVER_EVENTS = {
    schema.tag_of(kind): kind
    for kind in vars(server_events).values()
    if inspect.isclass(kind) and issubclass(kind, ServerEvent) and schema.tag_of(kind)
}
"""Every event that the server can send, by type."""
SERVER = list(SERVER_EVENTS.values())
MODULES = (server_events, client_events, settings, items)


def meanings() -> dict[tuple[str, str], str]:
    """Return the docstring under each attribute of the wire's classes, by class and attribute."""
    found: dict[tuple[str, str], str] = {}
    for module in MODULES:
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                for item, text in zip(node.body, node.body[1:], strict=False):
                    if isinstance(item, ast.AnnAssign) and isinstance(text, ast.Expr):
                        said = str(ast.literal_eval(text.value))
                        found[node.name, ast.unparse(item.target)] = " ".join(said.split())
    return found


MEANINGS = meanings()


def meaning(kind: type, name: str) -> str:
    """Return the docstring of a key, in the class or in one that it inherits from."""
    return next(
        MEANINGS[base.__name__, name] for base in kind.__mro__ if (base.__name__, name) in MEANINGS
    )


def value(hint: Any) -> str:
    """Describe the values of type `hint`, with links to the objects that they may be."""
    if not objects_in(hint):
        return schema.expected(hint, schema.JSON).replace("|", "\\|")
    said: list[str] = []
    for member in schema.members(hint):
        if get_origin(member) is tuple:
            limits = [mark.max_length for mark in schema.marks(hint)]
            most = [f" (at most {limit})" for limit in limits if limit is not None]
            said.append(f"a list of {value(get_args(member)[0])}{''.join(most)}")
        elif schema.is_struct(member):
            link = f"[{member.__name__}](#{member.__name__.lower()})"
            said.append(f"changes of {link}" if is_change(member) else link)
        else:
            said.append(value(member))
    return " or ".join(said)


def objects_in(hint: Any) -> list[Any]:
    """List the objects that a value of type `hint` may be or contain, not looking inside them."""
    found: list[Any] = []
    for member in schema.members(hint):
        if schema.is_struct(member):
            found.append(member.__base__ if is_change(member) else member)
        elif get_origin(member) is tuple:
            found += objects_in(get_args(member)[0])
    return found


def is_change(kind: Any) -> bool:
    """Return whether a struct has the changes of an update."""
    return issubclass(kind, schema.Settings) and kind.__base__ is not schema.Settings


def table(kind: Any, *, read: bool) -> str:
    """Return the table of an object's keys; with defaults if clients can write it."""
    rows: list[tuple[str, ...]] = []
    # The heading of an event is its type, and the introduction tells of its id.
    event = kind in (*CLIENT, *SERVER)
    tag = kind.__struct_config__.tag_field
    if tag and not event:
        constant = json.dumps(schema.tag_of(kind))
        rows.append((f"`{tag}`", f"`{constant}`", *(["required"] if read else []), ""))
    for name, hint in schema.hints_of(kind).items():
        if not (event and name == "event_id"):
            default = [default_of(kind, name)] if read else []
            rows.append((f"`{name}`", value(hint), *default, meaning(kind, name)))
    head = ("key", "value", *(["default"] if read else []), "meaning")
    lines = [head, ("---",) * len(head), *rows] if rows else []
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    tunes = getattr(kind, "tunes", {})
    if tunes:
        text += "\nAccepted without effect:\n\n"
        text += "".join(f"- `{key}`: {why}\n" for key, why in tunes.items())
    instead = getattr(kind, "unsupported", {})
    if instead:
        text += "\nRefused, with what to do instead:\n\n"
        text += "".join(f"- `{key}`: {hint}\n" for key, hint in instead.items())
    return text


def default_of(kind: Any, name: str) -> str:
    """Return the value of a key that a client leaves out."""
    marks = schema.marks(schema.hints_of(kind)[name])
    default = schema.default_of(kind, name)
    if schema.TOLD in marks:
        return "the server's"
    if default is NODEFAULT:
        return "required"
    text = json.dumps(None if default is UNSET else plain(default))
    return f"`{text}`" if len(text) <= 40 else "its defaults"


def within(kinds: list[Any]) -> list[Any]:
    """List all objects that those of `kinds` contain, in the order in which they are met."""
    found: dict[Any, None] = {}
    for kind in kinds:
        for hint in schema.hints_of(kind).values():
            for inner in objects_in(hint):
                if inner not in found:
                    found |= dict.fromkeys([inner, *within([inner])])
    return list(found)


def chapter(kinds: list[Any], *, read: bool) -> str:
    """Return the sections of the events of `kinds`."""
    return "".join(section(schema.tag_of(kind), kind, read=read) for kind in kinds)


def section(title: str, kind: Any, *, read: bool) -> str:
    """Return the section of an event or object: its docstring and the table of its keys."""
    keys = table(kind, read=read)
    text = f"\n### {title}\n\n{inspect.cleandoc(kind.__doc__)}\n"
    return f"{text}\n{keys}" if keys else text


def page() -> str:
    """Return the whole page."""
    readable = within(CLIENT)
    ours = [kind for kind in (*CLIENT, *SERVER) if schema.tag_of(kind).startswith("voiceloop.")]
    order = inspect.cleandoc(responses.__doc__ or "").split("\n\n", 2)[2]
    text = INTRODUCTION
    text += "\n## From the client\n"
    text += chapter([kind for kind in CLIENT if kind not in ours], read=True)
    text += "\nRefused, with what to do instead:\n\n"
    text += "".join(f"- `{name}`: {hint}\n" for name, hint in parsing.UNSUPPORTED.items())
    text += "\n## From the server\n"
    text += chapter([kind for kind in SERVER if kind not in ours], read=False)
    text += f"\n## The order of a response\n\n{order}\n"
    text += f"\n## What voiceloop adds\n\n{EXTENSIONS}"
    text += chapter([kind for kind in ours if kind in CLIENT], read=True)
    text += chapter([kind for kind in ours if kind in SERVER], read=False)
    text += "\n## Objects\n"
    for kind in dict.fromkeys([*readable, *within(SERVER)]):
        text += section(kind.__name__, kind, read=kind in readable)
    return text


if __name__ == "__main__":
    Path("docs/protocol.md").write_text(page(), encoding="utf-8")
