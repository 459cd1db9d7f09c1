"""Python functions as tools: the decorator `tool`, what it reads from a function, and their calls.

The name of the function is the name of the tool, the first paragraph of its docstring is the
description, and its annotations are the types of the arguments. The arguments that a model writes
are converted to these types before the function is called.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from copy import copy
from functools import update_wrapper
from typing import (
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import anyio
import anyio.from_thread
import msgspec
from anyio.lowlevel import current_token
from msgspec import Meta

from voiceloop.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

TIMEOUT_S = 10.0
"""Seconds after which a call is given up, if the tool sets no other time."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""Pattern of the name of a tool, as chat servers require it."""
LONGEST_DESCRIPTION = 1000
"""Maximum number of characters of a description."""
_MEANT = "write it as: def weather(city: str) -> str, with a docstring that says what it does"
_UNUSABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class DeclaredTool(Generic[P, R]):
    """A function that the language model may call. A program can still call it as a function.

    The attributes describe the tool for the model, and say how a call is run.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        timeout_s: float = TIMEOUT_S,
        outlives: bool = False,
        confirm: bool = False,
    ) -> None:
        """Read the name, the description and the arguments from `function`. Raises ConfigError if
        it cannot be offered to a model."""
        update_wrapper(self, function)
        self.name = _name(function)
        self.description = _description(function, self.name)
        self.timeout_s = timeout_s
        """Seconds after which a call is given up."""
        self.outlives = outlives
        """Whether a call goes on if the user interrupts the reply that made it."""
        self.confirm = confirm
        """Whether the user must agree to a call before it is run."""
        if not timeout_s > 0:
            raise ConfigError(
                f"the tool {self.name} has a time-out of {timeout_s:g} s", "give more"
            )
        self._function = function
        self._arguments = _arguments(function, self.name)
        self.parameters: Mapping[str, Any] = _schema(self._arguments, self.name)
        """JSON schema of the tool's arguments."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly, not as a tool."""
        return self._function(*args, **kwargs)

    def read(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Convert the arguments that a model wrote to the types of the function's parameters.
        Unknown arguments are left out, and a number may be given as text. Raises
        msgspec.ValidationError if they do not fit."""
        found = msgspec.convert(dict(arguments), self._arguments, strict=False)
        return {name: getattr(found, name) for name in self._arguments.__struct_fields__}

    async def run(self, arguments: Mapping[str, object]) -> object:
        """Call the function with the arguments that a model wrote, and return its result. A
        function that is not async runs on a thread of its own."""
        given = self.read(arguments)
        function: Any = self._function
        if inspect.iscoroutinefunction(function):
            return await function(**given)
        result = await on_thread(lambda: function(**given), f"tool {self.name}")
        return await result if inspect.isawaitable(result) else result


async def on_thread(function: Callable[[], T], name: str) -> T:
    """Call `function` on a new daemon thread called `name`, and return its result or raise its
    error.

    If the call is cancelled, the thread goes on, and its result is dropped. The threads of anyio
    are not used: a program waits for them at its end, and a function may never return.
    """
    done, token, context = anyio.Event(), current_token(), copy_context()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(context.run(function))
        except BaseException as error:  # SystemExit too, since it ends only this thread
            errors.append(error)
        with suppress(RuntimeError):  # the loop is closed
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=run, name=name, daemon=True).start()
    await done.wait()
    if errors:
        error = errors[0]
        raise error if isinstance(error, Exception) else RuntimeError(repr(error))
    return results[0]


@overload
def tool(function: Callable[P, R], /) -> DeclaredTool[P, R]: ...
@overload
def tool(
    *, timeout_s: float = ..., outlives: bool = ..., confirm: bool = ...
) -> Callable[[Callable[P, R]], DeclaredTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a tool: `@tool`, or `@tool(timeout_s=30, outlives=True, confirm=True)`.

    Raises ConfigError if the function cannot be described to a language model.
    """
    if function is None:
        return lambda given: DeclaredTool(given, **options)
    return DeclaredTool(function, **options)


def declared(function: Callable[..., Any]) -> DeclaredTool[..., Any]:
    """Return `function` itself if it is a tool already, otherwise a tool that calls it. Raises
    ConfigError if it cannot be offered to a model."""
    return function if isinstance(function, DeclaredTool) else DeclaredTool(function)


def _name(function: Any) -> str:
    if not inspect.isroutine(function):
        raise ConfigError(f"{function!r} is no function", _MEANT)
    name: str = function.__name__
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"a tool cannot be called {name}", "give the function a name of at most 64 letters a-z"
        )
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise ConfigError(f"the tool {name} yields its results", "return one result")
    return name


def _description(function: Any, name: str) -> str:
    written = inspect.cleandoc(getattr(function, "__doc__", None) or "").strip()
    first = " ".join(written.partition("\n\n")[0].split())
    if not first:
        raise ConfigError(
            f"the tool {name} has no docstring", "say in it what the tool does: the model reads it"
        )
    if len(first) > LONGEST_DESCRIPTION:
        raise ConfigError(
            f"the first paragraph of the docstring of {name} has {len(first)} characters",
            f"{LONGEST_DESCRIPTION} are the most; the model sees no later paragraph",
        )
    return first


def _arguments(function: Any, name: str) -> type[msgspec.Struct]:
    """Return a struct with the parameters of a function as its fields."""
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(f"the annotations of {name} cannot be read: {error}", _MEANT) from None
    fields: list[Any] = []
    for one in parameters:
        if one.kind in _UNUSABLE or one.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise ConfigError(
                f"the tool {name} takes {one}, which a model cannot name", "name each argument"
            )
        if one.name not in hints:
            raise ConfigError(f"the argument {one.name} of {name} has no type", _MEANT)
        hint = _described(hints[one.name])
        fields.append((one.name, hint, *_default(one.default)))
    try:
        return msgspec.defstruct(f"{name} arguments", fields, kw_only=True)
    except (TypeError, ValueError) as error:
        raise _indescribable(name, error) from None


def _described(hint: Any) -> Any:
    """Convert a text in `Annotated`, as in `Annotated[str, "Name of a city"]`, to the description
    in the JSON schema."""
    if get_origin(hint) is not Annotated:
        return hint
    base, *marks = get_args(hint)
    described = [Meta(description=mark) if isinstance(mark, str) else mark for mark in marks]
    return Annotated[(base, *described)]


def _default(value: Any) -> tuple[Any, ...]:
    if value is inspect.Parameter.empty:
        return ()
    if isinstance(value, list | dict | set | bytearray):
        return (msgspec.field(default_factory=lambda: copy(cast(object, value))),)
    return (value,)


def _schema(arguments: type[msgspec.Struct], name: str) -> dict[str, object]:
    """Return the JSON schema of the arguments without references, since small models do not follow
    them."""
    template = "#/{name}"
    try:
        (top,), parts = msgspec.json.schema_components([arguments], ref_template=template)
        return _inlined(top, parts, ())
    except (TypeError, ValueError, NotImplementedError) as error:
        raise _indescribable(name, error) from None


def _inlined(schema: Any, parts: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_inlined(one, parts, within) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if reference := schema.get("$ref"):
        part = reference.removeprefix("#/")
        if part in within:
            raise TypeError(f"{part} contains itself")
        return _inlined(parts[part], parts, (*within, part))
    return {
        key: {name: _inlined(one, parts, within) for name, one in value.items()}
        if key == "properties"  # the keys are names of arguments, and one may be called title
        else _inlined(value, parts, within)
        for key, value in schema.items()
        if key != "title" and (key, value) != ("required", [])
    }


def _indescribable(name: str, error: Exception) -> ConfigError:
    why = str(error).partition("\n")[0]
    return ConfigError(
        f"the arguments of the tool {name} cannot be described to a model: {why}",
        "use str, int, float, bool, Literal, Enum, list, dict, a dataclass or a msgspec Struct",
    )
