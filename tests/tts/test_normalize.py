"""What is said for what is written."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.tts.written import SAID as WRITTEN
from voiceloop.languages import Language, installed, language
from voiceloop.languages.en import ENGLISH
from voiceloop.tts.normalize import SpokenText, normalize

pytestmark = pytest.mark.pure
CODE = "There is code here that I cannot read aloud."
WITHIN = "code that I cannot read aloud"

SAID = {
    # numbers
    "I pick 7.": "I pick seven.",
    "3.14 and .5": "three point one four and point five",
    "007": "zero zero seven",
    "B12, H2O, COVID-19": "B twelve, H two O, COVID nineteen",
    "the 21st of May, 1st": "the twenty-first of May, first",
    "in 1984, 2024 and 1905": "in nineteen eighty-four, twenty twenty-four and nineteen oh-five",
    "the 1980s and the '90s": "the nineteen eighties and the nineties",
    "1/2 cup, 2 1/2 cups, 2½ cups": "one half cup, two and a half cups, two and a half cups",
    "3/4 tsp and 1 1/2 tsp": "three quarters teaspoon and one and a half teaspoons",
    "call 555-123-4567": "call five five five, one two three, four five six seven",
    "5-10 minutes, pages 3–5": "five to ten minutes, pages three to five",  # noqa: RUF001
    "No. 5 is alive. No.": "number five is alive. No.",
    "version 1.2.3": "version one point two point three",
    "\uff13\uff15 and \u0663": "thirty-five and three",
    # money, shares, units
    "€2.5 million, $10k": "two point five million euros, ten thousand dollars",
    "-5 °C, 1°F, 90°": "minus five degrees Celsius, one degree Fahrenheit, ninety degrees",
    "5 km/h, 1 ft, 3 m²": "five kilometers per hour, one foot, three square meters",
    # times
    "at 4 p.m.": "at four P M.",
    "4:05, 4:00, 16:30": "four oh five, four o'clock, sixteen thirty",
    # signs
    "12 + 9 = 21": "twelve plus nine equals twenty-one",
    "12 - 9 = 3, 12-9=3": "twelve minus nine equals three, twelve minus nine equals three",
    "6 * 7 = 42, 3 x 4": "six times seven equals forty-two, three times four",
    "8 / 2 = 4, 8 ÷ 2": "eight divided by two equals four, eight divided by two",
    "x², 2^10, a < b": "x squared, two to the power of ten, a less than b",
    "AT&T, C++, #1, @bob": "AT and T, C plus plus, number one, at bob",
    # abbreviations
    "Dr. Smith vs. Mr. Jones, etc.": "Doctor Smith versus Mister Jones, et cetera.",
    "fruit, e.g. apples, i.e. these": "fruit, for example apples, that is these",
    "St. John lives on Main St.": "Saint John lives on Main Street.",
    "The U.S. Army. H. G. Wells.": "The U S Army. H G Wells.",
    "World War II, Henry VIII": "World War two, Henry the eighth",
    # addresses
    "www.example.com/a-b?x=1#y.": "example dot com.",
    "https://me:pw@example.com:8080/a/b, HTTP://x.org": "example dot com, x dot org",
    "github.com/a-b/c": "github dot com slash a dash b slash c",
    "file:///tmp/notes": "slash tmp slash notes",
    "mailto:bob@x.org": "bob at x dot org",
    "https://docs.example.org/": "docs dot example dot org",
    "bob_s@mail.example.org!": "bob underscore s at mail dot example dot org!",
    "file.txt and .NET": "file dot txt and dot NET",
    # markup
    "**Bold**, *it*, __so__ and `code`.": "Bold, it, so and code.",
    "# Pasta\n- flour\n- two eggs\n": "Pasta. flour. two eggs.",
    "[a link](http://x.y/z), ![cat](c.png)": "a link, cat",
    "| a | b |\n|---|:--|\n| c | d |": "a, b. c, d",
    "So:\n```python\nprint(1)\n```\nDone.": f"So: {CODE} Done.",
    "~~~\nx\n~~~ and ```\ny": f"{CODE} and",
    "```json\n\n``` and ```x = 1```": "and x equals one",
    'It is {"a": [1, "}"], "b": 2} now': f"It is {WITHIN} now",
    '[{"a": 1}, {"b": 2}]': CODE,
    "{a, b} and [c]": "a, b, and, c",
    "See <!-- not this --> that<script>x</script>": f"See that {WITHIN}",
    "key a8f5f167f44f4964e6c998dee827110c!": f"key {WITHIN}!",
    "id 123e4567-e89b-12d3-a456-426614174000": f"id {WITHIN}",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA": CODE,
    "Nooooooo, " + "ab" * 100: "Nooo, " + "ab" * 20,
    "[a][1], [b][x] and [c](u 'v').\n\n[1]: http://x.y\n": "a, b and c.",
    "Old[^note].\n\n[^note]: A note.": "Old. A note.",
    "[![alt](i.png)](http://x.y) text": "alt text",
    "Tom &amp; Jerry&nbsp;&lt;3&#33; &unknown;": "Tom and Jerry! and unknown;",
    "$x^{2} + y_1$": "x to the power of two plus y one",
    "$$\\frac{a}{b} \\leq \\sqrt{2}$$": (
        "a divided by b less than or equal to the square root of two"
    ),
    "$2x^2$ or $5, $6": "two x to the power of two or five dollars, six dollars",
    "\\(\\alpha \\times 90^\\circ\\)": "alpha times ninety degrees",
    "wow!!!!!! =====\n____\n~~~~": "wow!",
    "a == b, :smile: :D :-) ok": "a equals b, ok",
    " /\\_/\\\n( o.o )\nMeow": "o dot o, Meow",
    "<|im_end|>x<|eot_id|>": "x",
    "he\u200bl\u00adlo \u202eabc\ufeff": "hello abc",
    "z\u0351\u036ba\u0308": "zä",
    "<b>bold</b> <speak>x</speak>": "bold x",
    "snake_case and __init__": "snake case and init",
    r"5 \* 3": "five times three",
    # marks and characters
    "“Hello,” she said — ‘bye’…": "Hello, she said, bye.",  # noqa: RUF001
    "Paris (the capital) is nice.": "Paris, the capital, is nice.",
    "What?! Really...": "What? Really.",
    '"Go," "now,"! Yes': "Go, now! Yes",
    "Well... it is": "Well, it is",
    "It’s fine 😀! 👍🏽 👨‍👩‍👧": "It's fine!",  # noqa: RUF001
    "cafe\u0301 na\u00efve": "café naïve",
    "😀 *** --- ```": "",
    "[[h@l'oU]]": "h at l'oU",
}


@pytest.mark.parametrize(("written", "said"), SAID.items())
def test_written_things_are_said_in_words(written: str, said: str) -> None:
    assert normalize(written, ENGLISH).text == said


words = st.sampled_from(
    "I it's the twenty-one o'clock capital Paris café et cetera point minus doctors".split()
)
plain_words = st.builds(lambda word, mark: word + mark, words, st.sampled_from(["", "", ",", "."]))


@given(st.lists(plain_words, min_size=1).map(" ".join))
def test_plain_words_are_said_as_they_are(text: str) -> None:
    said = normalize(text, ENGLISH)
    assert said.text == text
    assert [word.written for word in said.words] == [word.end for word in said.words]


def check(said: SpokenText, written: str) -> None:
    assert [said.text[word.start : word.end] for word in said.words] == said.text.split()
    assert all(a.end + 1 == b.start for a, b in pairwise(said.words))
    counts = [0, *(word.written for word in said.words), len(written)]
    assert counts == sorted(counts)


ALL = [text for cases in (SAID, *WRITTEN.values()) for case in cases.items() for text in case]
pieces = st.one_of(st.sampled_from(ALL), st.text(max_size=8))
EACH_LANGUAGE = pytest.mark.parametrize("known", [*map(language, installed())], ids=[*installed()])


jumble = st.text(
    alphabet=st.sampled_from("0123456789.,:/-\u2013+=$€¢%°²³⁶⁻º'\"x amphkμ1I#*_|()[]<>!^\u202f\n"),
    max_size=40,
)


@EACH_LANGUAGE
@given(st.lists(pieces).map("".join) | jumble)
@example("$.00")
@example("$,00")
@example("$.50 million")
@example("$.50-x")
def test_any_text_is_said_in_words_that_know_where_they_are_written(
    known: Language, text: str
) -> None:
    said = normalize(text, known)
    check(said, text)
    assert not any(char.isdecimal() or ord(char) < 32 for char in said.text)


HOSTILE = (
    *'<a [ [a]( * _a - 1, 1. a. a- \\ ( 1 a@ $a $1= {" { ``` <!-- <script &a'.split(),
    *"\\frac{a}{ ^{ a1 :a / | [^ data: aaaa é 1,11, 1:02: f: 0a- /a. a/ C:\\ I- MM".split(),
    *'a0a |x INV-1 a.- 1a º str I 1- +1 1" ⁶ a< != 1h $1- CA$ <sup>'.split(),
    *(" ", "- ", "\n", "-- ", " -a", "*sighs ", "[laughs ", "1 day/", "King X", "1 Cor. ", "3/10 "),
    *("AB12 ", "Mon, ", "*a music ", "ratio 1:", "1 ", "3. ", "1/2 ", "1 - ", "12 345 ", "01 "),
    *("1' ", '1" ', " '", "5 km - ", "Call 5 ", "PIN ", "Monday - ", "1:00 - ", "code is "),
)


@pytest.mark.slow
@EACH_LANGUAGE
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_repetition_does_not_take_quadratic_work(known: Language, piece: str) -> None:
    # Nothing is timed: with quadratic backtracking these would take minutes.
    normalize(piece * 1_000, known)


NUMBERS = st.from_regex(r"[1-9]{1,5}", fullmatch=True)
FORMS = st.sampled_from(
    "{}:{} {}-{} {}/{} {}.{} {},{} {}:{}:{} [{},{}] *{},{}* ({}) ${}.{} {}x{} {}:{}h {}/{}/{} "
    "|{}|=1 {}!=1 A-{}-{} v{}.{} c.{} {}p {}_{} {}%-{}% {}°N no.{}".split()
)
AROUND = st.sampled_from(
    [
        "",
        "1 Cor. ",
        *(f"{word} " for word in "ratio score at page rated Mark version on King".split()),
    ]
)


@given(
    st.sampled_from(["en", "de", "es"]), AROUND, FORMS, st.lists(NUMBERS, min_size=3, max_size=3)
)
def test_no_number_is_lost_whatever_stands_around_it(
    code: str, before: str, form: str, numbers: list[str]
) -> None:
    # In German 1.111 is one number, which is one word.
    assume(code != "de" or "{}.{}" not in form or len(numbers[1]) != 3)
    count = form.count("{}")
    said = normalize(before + form.format(*numbers) + " ok", language(code)).text.replace("-", " ")
    rest = normalize(before + "ok", language(code)).text.split()
    assert len(said.split()) >= len(rest) + count


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a => b", "a to b"),
        ("map(x => x + 1)", "map x to x plus one"),
        ("x => 5", "x greater than or equal to five"),
        ("a -> b", "a to b"),
        ("x = y", "x equals y"),
    ],
)
def test_an_arrow_is_no_sign_of_equality(text: str, said: str) -> None:
    assert normalize(text, ENGLISH).text == said


def test_a_thing_of_several_words_counts_with_its_last_word() -> None:
    said = normalize("It is $3.50, ok", ENGLISH)
    assert [(said.text[w.start : w.end], w.written) for w in said.words] == [
        ("It", 2), ("is", 5), ("three", 6), ("dollars", 6), ("and", 6), ("fifty", 6),
        ("cents,", 12), ("ok", 15),
    ]  # fmt: skip


def test_quotes_that_close_count_with_their_word() -> None:
    said = normalize('Say "hello," he said', ENGLISH)
    assert [word.written for word in said.words] == [3, 12, 15, 20]
