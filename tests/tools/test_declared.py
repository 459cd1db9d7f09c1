"""Python functions as tools: their schemas, their arguments, and functions that cannot be tools."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.errors import ConfigError
from voiceloop.tools.declared import DeclaredTool, declared, tool
from voiceloop.tools.toolbox import Toolbox

pytestmark = pytest.mark.pure


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    x: int
    y: int = 0


class Note(msgspec.Struct):
    title: str
    places: list[Place] = []


@tool(timeout_s=3, outlives=True, confirm=True)
def light(
    room: Annotated[str, "the room, such as kitchen"],
    level: int,
    share: float = 0.5,
    on: bool = True,
    color: Color = Color.RED,
    mood: Literal["warm", "cold"] = "warm",
    until: int | None = None,
    names: list[str] = ["a"],  # noqa: B006 - it is copied
    weights: dict[str, float] = {},  # noqa: B006
    place: Optional[Place] = None,  # noqa: UP045
    note: Note | None = None,
) -> tuple[Any, ...]:
    """Turn a light on,
    or off.

    Nobody needs to know more.
    """
    return (room, level, share, on, color, mood, until, names, weights, place, note)


PLACES = st.builds(Place, st.integers(-9, 9), st.integers(-9, 9))
GIVEN = st.fixed_dictionaries(
    {"room": st.text(), "level": st.integers(-(2**53), 2**53)},
    optional={
        "share": st.floats(allow_nan=False, allow_infinity=False),
        "on": st.booleans(),
        "color": st.sampled_from(Color),
        "mood": st.sampled_from(["warm", "cold"]),
        "until": st.none() | st.integers(-(2**53), 2**53),
        "names": st.lists(st.text()),
        "weights": st.dictionaries(st.text(), st.floats(0, 1)),
        "place": st.none() | PLACES,
        "note": st.none() | st.builds(Note, st.text(), st.lists(PLACES)),
    },
)


def validate(written: object) -> None:
    """Hold `written` against the schema, as others read it."""
    from jsonschema import Draft202012Validator

    Draft202012Validator(light.parameters).validate(written)


@pytest.mark.usefixtures("mcp_package")  # with which jsonschema comes
@given(GIVEN)
def test_what_fits_the_schema_reaches_the_function_as_its_annotations_say(
    meant: dict[str, Any],
) -> None:
    written = msgspec.json.decode(msgspec.json.encode(meant))
    validate(written)
    assert light(**light.read(written)) == light(**meant)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.mark.usefixtures("mcp_package")
@given(st.dictionaries(st.sampled_from([*light.parameters["properties"], "junk"]), JSON))
def test_whatever_a_model_writes_is_read_or_refused(written: dict[str, Any]) -> None:
    try:
        given = light.read(written)
    except msgspec.ValidationError as error:
        assert str(error)
        return
    assert [*given] == [*light.parameters["properties"]]
    validate(msgspec.to_builtins(given))


def test_a_default_that_can_change_is_made_anew_for_each_call() -> None:
    first = light.read({"room": "a", "level": 1})
    first["names"].append("b")
    assert light.read({"room": "a", "level": 1})["names"] == ["a"]


def test_the_schema_says_what_the_function_says() -> None:
    assert (light.name, light.description) == ("light", "Turn a light on, or off.")
    assert (light.timeout_s, light.outlives, light.confirm) == (3, True, True)
    assert light.parameters["required"] == ["room", "level"]
    properties: Any = light.parameters["properties"]
    assert properties["room"] == {"type": "string", "description": "the room, such as kitchen"}
    assert properties["place"]["anyOf"][0]["properties"]["x"] == {"type": "integer"}
    assert "$ref" not in str(light.parameters) and "light arguments" not in str(light.parameters)


class Home:
    def lamp(self, on: bool) -> None:
        """Turn the lamp on or off."""


def greet(greeting: str, name: str) -> str:
    """Greet somebody."""
    return f"{greeting} {name}"


def test_methods_and_wrapped_functions_are_tools_too() -> None:
    assert [*declared(Home().lamp).parameters["properties"]] == ["on"]

    @functools.wraps(greet)
    def again(*given: Any, **named: Any) -> str:
        return greet(*given, **named)

    assert [*declared(again).parameters["properties"]] == ["greeting", "name"]


def star(*names: str) -> None:
    """Name them."""


def by_place(name: str, /) -> None:
    """Name it."""


def no_type(name) -> None:
    """Name it."""


def no_docstring(name: str) -> None:
    pass


def unknown_type(name: Nowhere) -> None:  # type: ignore[name-defined] # noqa: F821
    """Name it."""


def any_object(name: Callable[[], None]) -> None:
    """Name it."""


class Chain(msgspec.Struct):
    next: Chain | None = None


def endless(chain: Chain) -> None:
    """Follow it."""


def yields(n: int) -> Any:
    """Count."""
    yield n


def long(n: int) -> None:
    pass


long.__doc__ = "word " * 300


def zwölf() -> None:
    """Return twelve."""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (star, "star takes *names"),
        (by_place, "by_place takes name"),
        (no_type, "argument name of no_type has no type"),
        (no_docstring, "no_docstring has no docstring"),
        (unknown_type, "name 'Nowhere' is not defined"),
        (any_object, "any_object cannot be described"),
        (endless, "Chain contains itself"),
        (yields, "yields yields its results"),
        (long, "has 1499 characters"),
        (zwölf, "cannot be called zwölf"),
        (Place, "is no function"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_in_one_line(
    function: Any, message: str
) -> None:
    for make in (tool, declared, lambda one: Toolbox([one])):
        with pytest.raises(ConfigError) as caught:
            make(function)
        assert message in caught.value.message
        assert caught.value.hint and "\n" not in caught.value.message


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_time_out_is_above_0(timeout_s: float) -> None:
    with pytest.raises(ConfigError, match="time-out"):
        tool(timeout_s=timeout_s)(greet)


def test_a_name_is_given_once() -> None:
    with pytest.raises(ConfigError, match="two tools are called greet"):
        Toolbox([greet, greet])


def test_tools_of_servers_get_other_names_where_theirs_are_taken() -> None:
    notes = list[str]()

    def made(*names: str) -> list[DeclaredTool[..., Any]]:
        found = [declared(greet) for _ in names]
        found = [tool()(functools.wraps(greet)(lambda greeting, name: "")) for _ in names]
        for one, name in zip(found, names, strict=True):
            one.name = name
        return found

    box = Toolbox([greet]).extended(
        {"a b": made("greet", "get_time", "x y", "x.y"), "c": made("greet", "z" * 99)}, notes.append
    )
    assert [one.name for one in box.offered] == [
        *("greet", "a_b_greet", "a_b_get_time", "x_y", "a_b_x_y", "c_greet", "z" * 64),
    ]
    assert notes == []
    box.extended({"c": made("greet")}, notes.append)
    assert notes == ["two tools of 'c' are called greet: one is left out"]
