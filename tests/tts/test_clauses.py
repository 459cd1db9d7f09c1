"""Cutting the reply into clauses: where, how soon, and what each counts as heard."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceloop.languages.en import ENGLISH
from voiceloop.tts.clauses import FORCED_ANYWHERE, ClauseCutter
from voiceloop.tts.normalize import normalize
from voiceloop.tts.pace import FIRST_CHARS, FIRST_WORDS, FORCED_WORDS, Tempo
from voiceloop.types import Clause, TokenBurst

pytestmark = pytest.mark.pure

ATOMS = (
    "3.5", "1,000", "$1,234.50", "4:30", "May 5, 2024", "Dr. Smith", "e.g. this", "U.S. Army",
    "J. R. R. Tolkien", "No. 5", "10 a.m. sharp", "1/2 cup", "12 + 9 = 21", "1, 2, 3 go",
    "Mr. T. Brown", "https://a.example/b,c.d;e:f?g!h#i", "bob.x@a.org", "`a, b. C; d` code",
    "**bold, words. Then more, yes** still", "*some, thing. Here* too",
    "[a, link. Here, so](http://a.b/c)", '{"a": 1, "b. C": [2, 3]}', "$x, y$", "R &amp; D",
    "```\na, b. C\n```", "```d, e. F```", "<!-- a, b. C -->",
    "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8",
    "9 am - 5 pm", "10 kg - 15 kg", "$5 - $10", "Monday - Friday", "Jan 5 - Feb 3", "1 000 000",
    "Feb 3, 2024", "1h 30m", "a != b", "x <= 5", "10⁻³", "p. 5", "6' 2", "USD 5",
    "PIN 4021", "Call 911", "2125550147", "20 ºC",
)  # fmt: skip
WORDS = ("the", "capital", "of", "France", "is", "a", "kind", "voice", "you", "hear", "today")
MARKS = (".", "!", "?", ",", ";", ":", " -", " —", "...", "…", '."', ".)", ".\n", "\n\n", ",\n- ")

nasty_tokens = st.lists(
    st.one_of(
        st.sampled_from([f" {word}" for word in WORDS]),
        st.sampled_from([f" {atom}" for atom in ATOMS]),
        st.sampled_from([*MARKS, " ", "\n", " 3.", *'1. 5 * ** ` ``` [ ]( ) {" } $'.split()]),
        st.sampled_from(["", "—", " (", '"', " Etc.", " p.m.", " “", "\r\n", "\0", "\ud800", "😀"]),
        st.text(max_size=6),
    ),
    max_size=60,
)


def prose(draw: st.DrawFn) -> list[str]:
    """A reply of words, atoms and marks, as a list of pieces that begin with their space."""
    pieces = draw(st.lists(st.sampled_from(WORDS + ATOMS + MARKS), min_size=1, max_size=60))
    return [piece if piece in MARKS else f" {piece}" for piece in pieces]


def burst(tokens: Sequence[str], first_id: int = 0) -> TokenBurst:
    ids = tuple(range(first_id, first_id + len(tokens)))
    return TokenBurst(7, ids, "".join(tokens), ends=tuple(accumulate(map(len, tokens))))


def cut(tokens: Sequence[str], sizes: Sequence[int] = ()) -> list[Clause]:
    """The clauses of a reply whose tokens come in bursts of `sizes`, the rest in one."""
    cutter, clauses, at = ClauseCutter(7, ENGLISH), list[Clause](), 0
    for size in [*sizes, len(tokens)]:
        clauses += cutter.feed(burst(tokens[at : at + size], at))
        at += size
    return clauses + cutter.flush()


def emitted(text: str) -> Iterator[tuple[int, Clause]]:
    """Each clause with how many characters had been seen when it came, one at a time."""
    cutter = ClauseCutter(7, ENGLISH)
    for index, char in enumerate(text):
        for clause in cutter.feed(burst([char], index)):
            yield index + 1, clause


@given(nasty_tokens, st.lists(st.integers(0, 5), max_size=60))
def test_clauses_and_their_tokens_do_not_depend_on_the_bursts(
    tokens: list[str], sizes: list[int]
) -> None:
    assert cut(tokens, sizes) == cut(tokens) == cut(tokens, [1] * len(tokens))


@given(nasty_tokens)
@example(["Hello there, my friend.", " "])
@example([])
def test_clauses_joined_are_the_reply_and_only_the_final_one_is_last(tokens: list[str]) -> None:
    clauses = cut(tokens)
    assert "".join(clause.text for clause in clauses) == "".join(tokens)
    assert [clause.index for clause in clauses] == list(range(len(clauses)))
    assert [clause.last for clause in clauses] == [False] * (len(clauses) - 1) + [True]


@given(nasty_tokens)
def test_spans_cover_every_spoken_word_once_and_count_whole_tokens(tokens: list[str]) -> None:
    before = end = 0
    for clause in cut(tokens):
        words = [clause.spoken[span.start : span.end] for span in clause.spans]
        assert words == clause.spoken.split()
        assert all(a.end < b.start for a, b in pairwise(clause.spans))
        counts = [before, *(span.tokens for span in clause.spans)]
        assert counts == sorted(counts)
        end += len(clause.text)
        through = [
            index + 1
            for index, (token, stop) in enumerate(
                zip(tokens, accumulate(map(len, tokens)), strict=True)
            )
            if token.strip() and stop - len(token) + len(token.rstrip()) <= end
        ]
        if clause.spans:
            assert counts[-1] == (len(tokens) if clause.last else max(through, default=0))
        before = counts[-1]


@given(st.composite(prose)())
def test_no_cut_falls_inside_a_number_abbreviation_address_or_markup(pieces: list[str]) -> None:
    starts = list(accumulate(map(len, pieces), initial=0))
    edges = set(accumulate(len(clause.text) for clause in cut(pieces)))
    text = "".join(pieces)
    for piece, start in zip(pieces, starts, strict=False):
        inside = set(range(start + 2, start + len(piece))) & edges
        # A mark that comes right before an atom can change what it is ("[" after "!", "_" in "*").
        assert piece in MARKS or not inside, (text, piece)


@given(st.composite(prose)())
@example([" $5 - $10", "\n\n", " USD 5"])
def test_clauses_say_the_words_that_the_whole_reply_says(pieces: list[str]) -> None:
    def words(said: str) -> list[str]:
        return [word.strip(",.;:!?") for word in said.split()]

    reply = "".join(pieces)
    apart = [word for clause in cut(pieces) for word in words(clause.spoken)]
    assert apart == words(normalize(reply, ENGLISH).text)


@pytest.mark.parametrize(
    ("seen", "clause"),
    [
        ("Well, of course, ", "Well, of course,"),
        ("Unfortunately, ", "Unfortunately,"),
        ("I see two: ", "I see two:"),
        ("Sure—here it is, ", "Sure—here it is,"),
        ("Here you go — ", "Here you go —"),
        ("Yes, it is—t", "Yes, it is—"),
        ("Let me see... ", "Let me see..."),
        ("The capital of France is Paris. ", "The capital of France is Paris."),
        ("Is it really so? ", "Is it really so?"),
        ("**Paris is nice.** ", "**Paris is nice.**"),
        ("He is called Dr. Smith. ", "He is called Dr. Smith."),
        ("It begins at 5 p.m. The ", "It begins at 5 p.m."),
        ("On May 5, 2024, w", "On May 5, 2024,"),
        ("In summer of 2024, w", "In summer of 2024,"),
        ("Ingredients\n", "Ingredients\n"),
        ("1. Beat the eggs\n", "1. Beat the eggs\n"),
        ("a b c d e house of ", "a b c d e house"),
        ("a b c d e of the house h", "a b c d e of the house"),
        ("a b c d e of a in h", "a b c d e of a in"),
    ],
)
def test_the_first_clause_comes_with_the_very_character_that_makes_it_safe(
    seen: str, clause: str
) -> None:
    first = next(emitted(f"{seen}xx yy zz."))
    assert (first[0], first[1].text) == (len(seen), clause)


@pytest.mark.parametrize(
    "seen",
    [
        "It costs about 3.",
        "It costs about 3.5",
        "It costs about 1,",
        "I spoke to the famous Dr. ",
        "It begins at 5 p.m. Th",
        "On the evening of May 5, ",
        "Sure, here it",
        "Sure. Here it",
        "Hi! ",
        "1. ",
        "See [the, long, list, of things, ",
        "This is **very, very, ",
        "```\nx = 1, 2; y = 3.\nz = 4\n",
        "Visit www.example.com/a,b;c:d.e",
        "The answer to that would be 5 - ",
        "a b c d e house o",
        "a b c d e of the ",
        "a b c d house of some ",
        "the number that I like best is 5 ",
    ],
)
def test_what_could_still_change_is_held_back(seen: str) -> None:
    assert not list(emitted(seen))


def test_later_clauses_are_the_rest_of_the_sentence_and_then_sentences() -> None:
    reply = "Well, of course, I can, if you like. First, sit down, please. Now, look, here."
    assert [clause.text for clause in cut([reply])] == [
        "Well, of course,",
        " I can, if you like.",
        " First, sit down, please.",
        " Now, look, here.",
    ]


@given(st.lists(st.sampled_from(WORDS), min_size=FORCED_WORDS + FORCED_ANYWHERE + 1, max_size=30))
def test_the_first_clause_is_forced_where_no_mark_comes(words: list[str]) -> None:
    first = cut([" ".join(words)])[0]
    assert FORCED_WORDS <= len(first.text.split()) <= FORCED_WORDS + FORCED_ANYWHERE


def test_an_endless_sentence_is_cut_too() -> None:
    clauses = cut(["word " * 600, "and, so, on, " * 100])
    assert all(len(clause.text) < 320 for clause in clauses)


@pytest.mark.parametrize(
    "start", ["Yes.", "Dear grandmother,", "Sentences beforehand take somewhat longer."]
)
def test_a_short_start_is_followed_by_a_short_clause(start: str) -> None:
    """The next clause is there before the first is over: nobody writes ten times as fast."""
    rest = [" word"] * 200
    first, second, *_ = cut([start, "\n", *rest])
    assert first.text.strip() == start
    assert len(second.text) <= max(6 * len(first.text), 75) + len(" word")


def test_a_token_that_ends_in_space_counts_with_its_words_and_an_unfinished_one_does_not() -> None:
    first, second = cut(["One two three", ".\n\n", "Four", " fi", "ve", "", " "])
    assert [span.tokens for span in first.spans] == [0, 0, 2]
    assert [span.tokens for span in second.spans] == [3, 7]


def test_a_number_counts_once_all_its_words_have_been_said() -> None:
    (clause,) = cut(["It", " costs", " $", "2", "1", ".", "50"])
    assert clause.spoken == "It costs twenty-one dollars and fifty cents"
    assert [span.tokens for span in clause.spans] == [1, 2, 2, 2, 2, 2, 7]


def test_tokens_without_known_ends_share_their_text_evenly() -> None:
    cutter = ClauseCutter(1, ENGLISH)
    clauses = cutter.feed(TokenBurst(1, (1, 2, 3, 4), "aaaa bbbb cccc dddd ")) + cutter.flush()
    assert [span.tokens for span in clauses[0].spans] == [1, 2, 3, 4]


@given(st.text())
def test_any_text_can_be_cut(text: str) -> None:
    spoken = " ".join(clause.spoken for clause in cut(list(text)))
    assert not re.search(r"[0-9\x00-\x1f*`]", spoken)


SLOW = Tempo(token_s=0.095, char_s=0.065, start_s=0.06)
"""A model of 1.5 billion weights on two cores, and a voice."""


def paced(text: str, tempo: Tempo, size: int = 4) -> list[tuple[float, Clause]]:
    """Each clause with the second at which it comes, if a token has `size` characters."""
    cutter, found = ClauseCutter(7, ENGLISH, lambda: tempo), list[tuple[float, Clause]]()
    tokens = [text[at : at + size] for at in range(0, len(text), size)]
    for number, token in enumerate(tokens):
        now = (number + 1) * tempo.token_s
        found += [(now, clause) for clause in cutter.feed(burst([token], number))]
    return found + [(len(tokens) * tempo.token_s, clause) for clause in cutter.flush()]


def gaps(clauses: list[tuple[float, Clause]], tempo: Tempo) -> list[float]:
    """Seconds of silence before each clause after the first."""
    found, over = list[float](), None
    for at, clause in clauses:
        begins = at + tempo.start_s
        if over is not None:
            found.append(max(begins - over, 0.0))
        over = max(begins, over or 0.0) + len(clause.text) * tempo.char_s
    return found


@pytest.mark.parametrize("token_s", [0.04, 0.06, 0.095, 0.12])
@given(
    st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9), min_size=8),
    st.integers(2, 6),
)
def test_text_that_comes_slowly_sounds_early_and_without_gaps(
    token_s: float, words: list[str], size: int
) -> None:
    tempo = replace(SLOW, token_s=token_s)
    clauses = paced(" ".join(words) + ".", tempo, size)
    assert "".join(clause.text for _, clause in clauses) == " ".join(words) + "."
    first = clauses[0][1].text.split()
    assert len(first) >= FIRST_WORDS or len(" ".join(first)) >= FIRST_CHARS
    # At most a clause as short as may be is written when the sound of the others ends.
    shortest_s = (FIRST_CHARS + 2 * 9) / size * tempo.token_s
    assert max(gaps(clauses, tempo), default=0) <= shortest_s
    usual = paced(" ".join(words) + ".", Tempo())[0][1].text.split()
    assert len(first) <= len(usual)
    if token_s >= 0.095 and size == 4:
        assert len(first) <= FIRST_WORDS + FORCED_ANYWHERE


@pytest.mark.parametrize(
    "text, first",
    [
        ("Sure, I would be happy to help you.", "Sure,"),
        ("Of course! The capital of France is Paris.", "Of course!"),
        ("Paris, the capital of France, is large.", "Paris, the capital"),
        ("No. 5 is the one that you want to see.", "No. 5 is the one"),
        ("I would be happy to help you with that.", "I would be happy"),
    ],
)
def test_openings_are_said_alone_only_where_text_comes_slowly(text: str, first: str) -> None:
    assert paced(text, SLOW)[0][1].text == first
    assert len(paced(text, replace(SLOW, token_s=0.01))[0][1].text) > len("Of course!")


def test_what_comes_more_slowly_than_it_sounds_is_not_cut_short() -> None:
    text = "I would be happy to help you with that problem of yours today."
    assert paced(text, replace(SLOW, token_s=0.3))[0][1] == paced(text, Tempo())[0][1]


@given(nasty_tokens, st.lists(st.integers(0, 5), max_size=60))
def test_slow_clauses_do_not_depend_on_the_bursts(tokens: list[str], sizes: list[int]) -> None:
    def pieces(sizes: list[int]) -> list[Clause]:
        cutter, found, at = ClauseCutter(7, ENGLISH, lambda: SLOW), list[Clause](), 0
        for size in [*sizes, len(tokens)]:
            found += cutter.feed(burst(tokens[at : at + size], at))
            at += size
        return found + cutter.flush()

    assert pieces(sizes) == pieces([1] * len(tokens))
