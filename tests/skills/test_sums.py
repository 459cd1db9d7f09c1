"""Sums are right, and so are units."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.skills.asked import ALONE, CODES, told
from voiceloop.skills.answer import answer, understand
from voiceloop.skills.known import Amount
from voiceloop.skills.phrases import phrases_of
from voiceloop.skills.sums import UNITS, converted, root

pytestmark = pytest.mark.pure

numbers = st.integers(0, 10_000) | st.decimals(0, 1000, places=2).map(float)
signs = st.sampled_from("+-*/")


def spoken(code: str, number: float, sign: str) -> str:
    """A number and the sign before it, in words of the language or in digits."""
    phrases = phrases_of(code)
    written = f"{number:g}".replace(".", phrases.numbers.decimal)
    return f"{phrases.operators[sign].partition('|')[0]} {written}"


@given(st.sampled_from(CODES), numbers, st.lists(st.tuples(signs, numbers), min_size=1, max_size=4))
@example("en", 0, [("/", 1)] * 4)
def test_a_chain_is_what_python_says(
    code: str, first: float, rest: list[tuple[str, float]]
) -> None:
    assume(all(number for sign, number in rest if sign == "/"))
    said = [f"{first:g}".replace(".", phrases_of(code).numbers.decimal)]
    said += [spoken(code, number, sign) for sign, number in rest]
    terms = [f"Fraction('{first:g}')", *(f"{s}Fraction('{n:g}')" for s, n in rest)]
    found = {request.kind: request for request in understand(" ".join(said), code, ALONE)}
    request = found["sum"]  # "0 menos 0" may be a time as well
    assert request.values["sum"].value == eval("".join(terms))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("half of 9 plus 3", "7.5"),
        ("the square root of 16 plus 9", "13"),
        ("2 to the power of 3 to the power of 2", "512"),
        ("2 plus 3 squared", "11"),
        ("20 percent of 50 plus 5", "15"),
        ("3/4 of 12", "9"),
        ("three quarters of 80", "60"),
        ("20 percent off 50", "40"),
        ("100 plus 10 percent", "110"),
        ("minus 5 minus minus 3", "minus 2"),
        ("10 divided by 3", "about 3.333"),
        ("one divided by three", "about 0.333"),
        ("double 7 plus 1", "15"),
        ("1,234.5 times 2", "2,469"),
        ("1 divided by 7000", "about 0.000143"),
        ("2 to the power of 100", "about 1.268 times 10 to the power of 30"),
        ("10 to the power of 20", "1 times 10 to the power of 20"),
    ],
)
def test_precedence_and_how_numbers_are_said(text: str, value: str) -> None:
    assert told(f"What is {text}?").text.removesuffix(".").endswith(f" is {value}")
    assert told("What is 5 divided by 0?").text == "Nothing can be divided by zero."


@pytest.mark.parametrize(
    "text", ["the square root of minus 4", "9 to the power of 99999", "2 to the power of 0.3", "5"]
)
def test_what_has_no_answer_of_that_kind_is_left_to_the_model(text: str) -> None:
    assert not [*understand(f"What is {text}?", "en", ALONE)]


@given(st.integers(0, 10**12), st.sampled_from([2, 3]))
def test_roots_are_exact_where_they_can_be(number: int, degree: int) -> None:
    assert root(Fraction(number**degree), degree) == number
    found = root(Fraction(number), degree)
    assert abs(found**degree - number) <= Fraction(1, 10**12)


@given(
    st.sampled_from([pair for pair in product(UNITS, UNITS) if pair[0] != pair[1]]),
    st.fractions(-1000, 1000, max_denominator=100),
)
def test_what_is_converted_there_and_back_is_the_same(
    pair: tuple[str, str], number: Fraction
) -> None:
    one, other = pair
    there = converted([Amount(number, (one,))], [other])
    assert (there is not None) == (UNITS[one].measures == UNITS[other].measures)
    if there is not None:
        back = converted([Amount(there.number, (other,))], [one])
        assert back is not None and back.number == number


@pytest.mark.parametrize(
    ("code", "text", "ends"),
    [
        ("en", "How many centimeters are in two meters?", "2 meters are 200 centimeters."),
        ("en", "What is 20 degrees Celsius in Fahrenheit?", "68 degrees Fahrenheit."),
        ("en", "How many centimeters are 5 feet 10 inches?", "177.8 centimeters."),
        ("en", "How many ounces are in a cup?", "1 cup is 8 fluid ounces."),
        ("en", "How many ounces are in a pound?", "1 pound is 16 ounces."),
        ("de", "Wie viele Zentimeter sind zwei Meter?", "2 Meter sind 200 Zentimeter."),
        ("de", "Was sind 3 Pfund in Kilogramm?", "3 Pfund sind 1,5 Kilogramm."),
        ("es", "¿Cuántos centímetros hay en dos metros?", "2 metros son 200 centímetros."),
        ("es", "Convierte 5 millas a kilómetros.", "aproximadamente 8,047 kilómetros."),
    ],
)
def test_units_are_told_in_words(code: str, text: str, ends: str) -> None:
    assert told(text, code).text.endswith(ends)


@pytest.mark.parametrize(
    ("code", "text", "ends"),
    [
        ("en", "What's 20 percent off 65 dollars?", "20 percent off 65 dollars is 52."),
        ("en", "Split 86 euros between four people.", "86 divided by 4 is 21.5."),
        ("en", "What is a 15 percent tip on 40 dollars?", "15 percent of 40 is 6."),
        ("en", "20 dollars plus 1 dollar and a half", ""),
        ("en", "20 dollars plus 15 dollars", "20 dollars plus 15 dollars is 35."),
        ("en", "20 dollars plus 15 euros", ""),
        ("de", "20 Prozent Rabatt auf 65 Euro", "ist 52."),
        ("de", "Teile 86 Euro auf vier Leute auf.", "86 geteilt durch 4 ist 21,5."),
        ("es", "Divide 86 euros entre cuatro personas.", "86 entre 4 es 21,5."),
        ("es", "20 por ciento de descuento en 65 euros", "es 52."),
        ("en", "What's 5 foot 11 in centimeters?", "5 feet and 11 inches are 180.34 centimeters."),
        ("en", "11 stone 4 in pounds", ""),
        ("en", "What is 5 foot 20 percent in meters?", ""),
        ("en", "How many liters are in a mile?", ""),
    ],
)
def test_sums_of_money_and_heights_are_understood_as_people_say_them(
    code: str, text: str, ends: str
) -> None:
    found = answer(text, code, ALONE)
    assert found.text.endswith(ends) if ends and found else not ends and found is None
