"""Parse tool calls in the notations that models write.

Hermes and Qwen write `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, or XML between the
same tags. Llama 3 writes `{"name": …, "parameters": {…}}`, with `;` between several calls, or
`<function=name>{…}</function>`. Mistral writes `[TOOL_CALLS] [{…}, …]` or
`[TOOL_CALLS]name[ARGS]{…}`. MiniCPM5 writes
`<function name="…"><param name="…">…</param></function>`, LFM2
`<|tool_call_start|>[name(key="…")]<|tool_call_end|>`, which is Python, and Gemma 4
`<|tool_call>call:name{key:<|"|>…<|"|>}<tool_call|>`. Small models put their calls between `<tools>`
and `</tools>`, because these marks stand around the list of tools in the prompt. All notations are
read for every model, because a model that was trained on several of them mixes them. This module
does not know where in a reply a call stands.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from voiceloop.foreign import is_deep

CALLS = {
    "<tool_call>": "</tool_call>",
    "<tools>": "</tools>",
    "<function=": "</function>",
    "<function name=": "</function>",
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<|tool_call>": "<tool_call|>",
    "<|python_tag|>": "",
    "[TOOL_CALLS]": "",
}
"""Marks that begin a call, each mapped to its end mark. Without an end mark (""), the call lasts to
the end of the reply."""
QUOTE = '<|"|>'
"""Gemma 4's quotation mark in arguments, a special token."""
SPELLING = ("<function", "<param", "</param>", QUOTE)
"""Parts of calls that are special tokens in some vocabularies, and have their text even so."""
NO_JSON, CUT_OFF = "it is no JSON", "the reply ends before it does"

_SHAPE = re.compile(
    r"(?=.*[\"'](?:name|function|tool|tool_name)[\"']\s*:)"
    r"(?=.*[\"'](?:arguments|parameters|args|input)[\"']\s*:)",
    re.DOTALL,
)
_MORE = re.compile(r"[{\[]|<function[ =]")
_BETWEEN = re.compile(r"(?:[\s;,]|\[TOOL_CALLS\])*")
_NAMED = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?\s*(?=\{)")
_FUNCTION = re.compile(
    r"<function(?:=| name=)(?P<name>[^>]*)>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL
)
_PARAMETER = re.compile(
    r"<param(?:eter=| name=)([^>]*)>\n?(?:<!\[CDATA\[)?(.*?)(?:\]\]>)?\n?(?:</param(?:eter)?>|\Z)",
    re.DOTALL,
)
_GEMMA = re.compile(r"call:(?P<name>[\w.-]+)\s*(?=\{)")
_GEMMA_PIECE = re.compile(
    r"""<\|"\|>(?P<text>.*?)(?:<\|"\|>|\Z)|(?P<json>"(?:[^"\\]|\\.?)*(?:"|\Z)|[{}\[\],:]|\s+)"""
    r"""|(?P<bare>[^{}\[\],:"\s<]+)""",
    re.DOTALL,
)
_PYTHON = re.compile(r"\[\s*[A-Za-z_][\w.]*\s*\(")
_DECODER = json.JSONDecoder(strict=False)


class ParsedCall(NamedTuple):
    """A tool call parsed from text."""

    name: str
    arguments: Mapping[str, object]
    problem: str = ""
    """Why the call cannot be read; empty if it can."""


def is_call(text: str) -> bool:
    """Return whether the JSON in `text` has the keys of a call. It may be incomplete."""
    return bool(_SHAPE.match(text))


def read(body: str) -> tuple[list[ParsedCall], str]:
    """Return the calls in `body` and the text after the last call.

    The list is never empty: text that cannot be read becomes a call with a `problem` and without a
    name.
    """
    calls, end = list[ParsedCall](), _skipped(body, 0)
    while end < len(body) and (found := _calls_at(body, end)):
        calls += found[0]
        end = _skipped(body, found[1])
    if not calls or _MORE.search(body, end):
        calls.append(ParsedCall("", {}, NO_JSON))
    return calls, body[end:]


def _skipped(body: str, at: int) -> int:
    """Return the index after the separators, such as `;`, that begin at index `at`. It is `at` if
    there are none."""
    between = _BETWEEN.match(body, at)
    return between.end() if between else at


def _calls_at(body: str, at: int) -> tuple[list[ParsedCall], int] | None:
    """Return the calls that begin at index `at`, and the index after them. None if no call can be
    read there."""
    if function := _FUNCTION.match(body, at):
        name, given = function["name"].strip(" \"'"), function["body"].strip()
        pairs = _PARAMETER.findall(given)
        named = {key.strip(" \"'"): _value(text) for key, text in pairs}
        return [_called(name, named or _json(given or "{}"))], function.end()
    if gemma := _GEMMA.match(body, at):
        return [written(gemma["name"], _gemma_json(body[gemma.end() :]))], len(body)
    if _PYTHON.match(body, at):
        return _python_calls(body[at:]), len(body)
    named = _NAMED.match(body, at)
    try:
        value, end = _DECODER.raw_decode(body, named.end() if named else at)
    except (ValueError, RecursionError):
        return None
    if named:
        return [_called(named["name"], value)], end
    every = cast("list[object]", value) if isinstance(value, list) else [value]
    return [_spelled(one) for one in every] or [ParsedCall("", {}, "it has no name")], end


def _gemma_json(text: str) -> str:
    """Return arguments in Gemma 4's notation as JSON: its keys are bare, and so may be texts."""
    pieces = list[str]()
    for piece in _GEMMA_PIECE.finditer(text):
        bare = piece["bare"]
        if piece["text"] is not None:
            pieces.append(json.dumps(piece["text"]))
        elif bare and (text[piece.end() :][:1] == ":" or isinstance(_json(bare), str)):
            pieces.append(json.dumps(bare))
        else:
            pieces.append(bare or piece["json"])
    return "".join(pieces)


def _python_calls(text: str) -> list[ParsedCall]:
    """Return the calls in a list of Python's calls with named arguments. Nothing is run."""
    try:
        listed = ast.parse(text.strip(), mode="eval").body
        if not isinstance(listed, ast.List):
            raise ValueError("a call stands in a list")
        return [_python_call(one) for one in listed.elts]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [ParsedCall("", {}, NO_JSON)]


def _python_call(node: ast.expr) -> ParsedCall:
    """Return the call that `node` writes. Raises ValueError if it is none with plain values."""
    if not isinstance(node, ast.Call):
        raise ValueError("something stands beside the calls")
    name = ast.unparse(node.func)
    if node.args:
        return ParsedCall(name, {}, "its arguments have no names")
    return _called(name, {str(one.arg): _python_value(one.value) for one in node.keywords})


def _python_value(node: ast.expr) -> object:
    """Return the value of an argument, which may spell `true`, `false` and `null` as JSON does.
    Raises ValueError for what is no plain value."""
    spelled = {"true": True, "false": False, "null": None}
    if isinstance(node, ast.Name) and node.id in spelled:
        return spelled[node.id]
    return ast.literal_eval(node)


def written(name: str, arguments: str) -> ParsedCall:
    """Return a call of the tool `name`. `arguments` is JSON; an empty text means that there are no
    arguments."""
    try:
        return _called(name, _DECODER.decode(arguments) if arguments.strip() else None)
    except (ValueError, RecursionError):
        return ParsedCall(name, {}, "its arguments are no JSON")


def _spelled(value: object) -> ParsedCall:
    """Return the call that the JSON object `value` describes. Models use several names for each
    key, such as `arguments` and `parameters`."""
    if not isinstance(value, dict):
        return ParsedCall("", {}, "it has no name")
    keys = cast("dict[str, object]", value)
    if isinstance(keys.get("function"), dict):
        return _spelled(keys["function"])
    names = (keys.get(key) for key in ("name", "function", "tool", "tool_name"))
    name = next((name for name in names if isinstance(name, str)), None)
    if name is None:
        return ParsedCall("", {}, "it has no name")
    given = (keys.get(key) for key in ("arguments", "parameters", "args", "input"))
    return _called(name, next((one for one in given if one is not None), None))


def _called(name: str, given: object) -> ParsedCall:
    """Return a call of `name` with the arguments `given`: an object, a text with JSON, or None."""
    if isinstance(given, str):
        given = _json(given) if given.strip() else None
    arguments = {} if given is None else given
    if not isinstance(arguments, dict):
        return ParsedCall(name, {}, "its arguments are no object")
    if is_deep(arguments):
        return ParsedCall(name, {}, "its arguments are nested too deep")
    return ParsedCall(name, cast("dict[str, object]", arguments))


def _json(text: str) -> Any:
    """Return the value of the JSON in `text`, or `text` itself if it is not JSON."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text


def _value(text: str) -> object:
    return _json(text.strip())
