"""Reading values as types: what is wrong is found, and said in words that a person can use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta

from voiceloop.settings.schema import (
    JSON,
    TOLD,
    TOML,
    Count,
    Fraction,
    Mistake,
    Object,
    Settings,
    Texts,
    changes,
    explained,
    instead,
    nearest,
    read,
    suggestion,
)
from voiceloop.wire.items import AudioBytes

pytestmark = pytest.mark.pure


class Cat(Object, frozen=True, tag="cat"):
    """An animal."""

    name: Annotated[str, Meta(max_length=8)]
    lives: Annotated[int, Meta(ge=1, le=9)] | Literal["many"] = 9


class Dog(Object, frozen=True, tag="dog"):
    """Another."""

    name: str
    sound: AudioBytes | None = None


class House(Object, frozen=True):
    """All that a value can be."""

    unsupported: ClassVar = {"garden": "there is none"}

    pets: Annotated[tuple[Cat | Dog, ...], Meta(max_length=3)] = ()
    first: Cat | None = None
    door: Literal["open", "closed"] = "closed"
    heat: Fraction = 0.5
    rooms: Count = 1
    lit: bool = False
    labels: Mapping[Annotated[str, Meta(max_length=4)], Annotated[str, Meta(max_length=4)]] = {}
    sayings: Texts = ()
    pair: tuple[int, str] = (1, "a")
    lift: Annotated[None, instead("take the stairs")] = None
    notes: Mapping[str, object] = {}


MANUAL = ""
"""No hint: each reader names the page that lists what there is."""
SAID: list[tuple[dict[str, Any], tuple[str | int, ...], str, str]] = [
    ({"door": "opne"}, ("door",), 'must be "open" or "closed", not "opne"', "did you mean 'open'?"),
    ({"dor": "open"}, ("dor",), "is not a parameter", "did you mean 'door'?"),
    ({"zzzz": 1}, ("zzzz",), "is not a parameter", MANUAL),
    ({"garden": 1}, ("garden",), "is not supported", "there is none"),
    ({"heat": 2}, ("heat",), "must be a number from 0 to 1, not 2", MANUAL),
    ({"heat": float("nan")}, ("heat",), "must be a number from 0 to 1, not NaN", MANUAL),
    ({"rooms": -1}, ("rooms",), "must be an integer from 0, not -1", MANUAL),
    ({"rooms": None}, ("rooms",), "must be an integer from 0, not null", MANUAL),
    ({"lit": 1}, ("lit",), "must be true or false, not 1", MANUAL),
    ({"lift": 3}, ("lift",), "must be null, not 3", "take the stairs"),
    ({"pair": [1, 2]}, ("pair", 1), "must be text, not 2", MANUAL),
    (
        {"pets": 3},
        ("pets",),
        "must be a list, each entry an object of at most 3 entries, not 3",
        "",
    ),
    ({"pets": [3]}, ("pets", 0), "must be an object, not 3", MANUAL),
    (
        {"pets": [{"type": "dgo"}]},
        *(("pets", 0, "type"), 'must be "cat" or "dog", not "dgo"', "did you mean 'dog'?"),
    ),
    (
        {"pets": [{"type": "cat", "name": "x" * 9}]},
        *(("pets", 0, "name"), "has 9 characters, and 8 are the most", MANUAL),
    ),
    (
        {"pets": [{"type": "cat", "name": "x", "lives": 10}]},
        *(("pets", 0, "lives"), 'must be an integer from 1 to 9 or "many", not 10', MANUAL),
    ),
    (
        {"pets": [{"type": "dog", "name": "x", "sound": "A"}]},
        *(("pets", 0, "sound"), "is not base64", "use the standard alphabet, with padding"),
    ),
    (
        {"pets": [{"type": "dog", "name": "x", "sound": 2}]},
        *(("pets", 0, "sound"), "must be audio in base64 or null, not 2", MANUAL),
    ),
    (
        {"pets": [{"type": "dog", "name": "x"}] * 4},
        *(("pets",), "has 4 entries, and 3 are the most", MANUAL),
    ),
    ({"labels": {"a": 3}}, ("labels", "a"), "must be text of at most 4 characters, not 3", MANUAL),
    (
        {"labels": {"a": "x" * 5}},
        *(("labels", "a"), "has 5 characters, and 4 are the most", MANUAL),
    ),
    (
        {"sayings": ["a", ""]},
        *(("sayings",), 'must be a list of texts, none empty, not ["a", ""]', MANUAL),
    ),
    (
        {"door": "x" * 100},
        *(("door",), f'must be "open" or "closed", not "{"x" * 56}...', MANUAL),
    ),
]


@pytest.mark.parametrize(("value", "path", "problem", "hint"), SAID)
def test_what_is_wrong_is_named_with_what_was_expected_and_what_was_meant(
    value: dict[str, Any], path: tuple[str | int, ...], problem: str, hint: str
) -> None:
    with pytest.raises(Mistake) as caught:
        read(House, value, JSON)
    assert (caught.value.path, str(caught.value), caught.value.hint) == (path, problem, hint)


def test_a_wrong_type_is_told_from_a_wrong_value() -> None:
    for value, code in (("opne", "invalid_value"), (3, "invalid_type"), (None, "invalid_type")):
        assert explained(Literal["open"], value, JSON).code == code
    for value, code in ((2, "invalid_value"), (2.5, "invalid_value"), ("2", "invalid_type")):
        assert explained(Fraction, value, JSON).code == code
    for value, code in ((-1, "invalid_value"), (1.5, "invalid_type"), (True, "invalid_type")):
        assert explained(Count | Literal["auto"], value, JSON).code == code


def test_each_reader_speaks_in_its_own_words() -> None:
    with pytest.raises(Mistake, match=r"^must be a table or 'none', not 3$"):
        read(House, {"first": 3}, TOML)
    with pytest.raises(Mistake, match=r"^must be a list of tables, in double brackets.*, not 3$"):
        read(House, {"pets": 3}, TOML)
    with pytest.raises(Mistake, match=r"^must be an object or null, not 3$"):
        read(House, {"first": 3}, JSON)
    assert explained(Literal["cpu"], "gpu", TOML).hint == ""
    assert explained(Literal["cpu"], "gpu", JSON).hint == "did you mean 'cpu'?"


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*House.__struct_fields__, "type", "name", "lives", "sound"]), inner
        )
    ),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_is_a_house_or_one_mistake_that_names_a_place_in_it(value: Any) -> None:
    try:
        house = read(House, value, JSON)
    except Mistake as mistake:
        assert str(mistake).isprintable()
        for step in mistake.path[:-1]:
            value = value[step]
        if mistake.path and mistake.code != "missing_required_parameter":
            value[mistake.path[-1]]
    else:
        assert read(House, msgspec.to_builtins(house, enc_hook=bytes), JSON) == house


def test_numbers_may_be_texts_where_all_is_text() -> None:
    assert read(Count, "12", JSON, text=True) == 12
    assert read(Count | Literal["auto"], "auto", JSON, text=True) == "auto"
    assert read(Path, "a/b", JSON, text=True) == Path("a/b")
    for wrong in ("-1", "x", "", "\udcff"):
        with pytest.raises(Mistake, match="must be an integer from 0"):
            read(Count, wrong, JSON, text=True)
    with pytest.raises(Mistake, match="must be 'a'"):
        read(Literal["a"], "\udcff", TOML, text=True)
    assert read(str, "\udcff", JSON, text=True) == "\udcff"  # as in the name of a file


# --- changes --------------------------------------------------------------------------------------


class Lamp(Settings, frozen=True):
    """Settings within settings."""

    colour: str = "white"
    level: Fraction = 1.0


class Room(Settings, frozen=True):
    """Settings."""

    kind: Literal["room"] = "room"
    lamp: Lamp = Lamp()
    spare: Lamp | None = None
    owner: Annotated[str, TOLD] = "me"


def test_an_update_gives_some_keys_and_the_others_stay() -> None:
    room = Room(lamp=Lamp("red", 0.3), spare=Lamp(level=0.1))
    update = read(changes(Room), {"kind": "room", "lamp": {"level": 0.5}, "owner": [1]}, JSON)
    assert update.spare is UNSET and isinstance(update, Room)
    assert room.updated(update) == Room(lamp=Lamp("red", 0.5), spare=Lamp(level=0.1))
    off = read(changes(Room), {"kind": "room", "spare": None}, JSON)
    assert room.updated(off) == Room(lamp=Lamp("red", 0.3))
    on = read(changes(Room), {"kind": "room", "spare": {"colour": "blue"}}, JSON)
    assert room.updated(off).updated(on).spare == Lamp("blue")
    assert room.updated(read(changes(Room), {}, JSON)) == room
    with pytest.raises(Mistake, match="from 0 to 1") as caught:
        read(changes(Room), {"kind": "room", "lamp": {"level": 5}}, JSON)
    assert caught.value.path == ("lamp", "level")


# --- names ----------------------------------------------------------------------------------------


def test_a_name_is_suggested_where_one_is_near() -> None:
    known = ["alpha", "Beta", "gamma"]
    assert nearest("beta", known) == "Beta" and nearest("gama", known) == "gamma"
    assert nearest("zzzz", known) is None and nearest("a" * 65, ["a" * 64]) is None
    assert suggestion("alhpa", known) == "did you mean 'alpha'?"
    assert suggestion("zzzz", known) == "choose one of: Beta, alpha, gamma"
    assert suggestion("?", map(str, range(20))).endswith(" and 8 more")
