"""What the users of the bench say, and where in it a silence may be taken for the end.

Sentences are written with marks before a word, for what has been said up to there:

    |  whole: it can be answered as it stands       What color is red |and green together?
    ~  open: a sentence by its grammar, that does
       not say all that an answer needs             What |is the capital ~of Australia?

Everywhere else it is incomplete: its grammar asks for more. A number before its unit, an object
that a verb cannot do without, and a question word that only an earlier sentence could complete
("Tell me how") count as missing; "What?" is whole, it asks to hear something again. Nothing here
knows of voices, sounds and turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Standing = Literal["incomplete", "open", "whole"]
"""How the words up to a place in a sentence stand by themselves."""

_MARKS: dict[str, Standing] = {"|": "whole", "~": "open"}
PUNCTUATION = ".,?!"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and how each of its beginnings stands by itself."""

    text: str
    standings: tuple[Standing, ...]
    """One for each place between two words."""

    @property
    def words(self) -> tuple[str, ...]:
        """Its words as written, with their punctuation."""
        return tuple(self.text.split())

    def prefix(self, words: int) -> str:
        """The first `words` words, without the punctuation at their end."""
        return " ".join(self.words[:words]).rstrip(PUNCTUATION)


def sentence(marked: str) -> Sentence:
    """A sentence in the notation of this module."""
    words = marked.split()
    standings = tuple[Standing, ...](_MARKS.get(word[0], "incomplete") for word in words[1:])
    return Sentence(" ".join(word.lstrip("|~") for word in words), standings)


def _sentences(marked: str) -> tuple[Sentence, ...]:
    return tuple(sentence(line) for line in marked.strip().splitlines())


QUESTIONS = _sentences("""
How many ounces are in 3 pounds?
What |year did the Berlin Wall fall?
I need to know ~5 ~plus 12.
What's goodbye ~in French?
What |is the baby ~of an owl |called?
How do planes stay ~in the air?
Where do rainbows come ~from?
How does photosynthesis work?
How many players are in a soccer team?
How long is January?
How much is 17 ~minus 3?
Do you know ~what time it is?
Do you know ~the opposite ~of wet?
Tell me ~a bedtime story.
What |color is red |and green |together?
Briefly, what is gravity?
What |is gravity?
Give me the capital ~of Japan.
What's yes ~in Italian?
What |year did the Second World War end?
Which language do I need ~in Kenya?
Tell me ~what comes ~after June.
Convert 12 weeks ~to days.
Give me a riddle.
Tell me ~what comes ~before July.
Name the opposite ~of thick.
Can you tell me ~a story |about a mouse?
16 plus 19, |please.
Tell me ~how long to cook ~potatoes.
Tell me ~something |interesting.
Convert 6 kilometers ~to meters.
Tell me ~what kind of animal a horse is.
Do you know ~what 8 times 6 is?
How do you peel garlic?
I need to know ~18 ~minus 6.
Convert 6 pounds ~to ounces.
Do you know ~a joke?
Can you calculate ~16 ~plus 7?
How many oceans are there?
Tell me ~what comes ~before November.
Start a timer ~for 90 seconds.
How does lightning work?
In which country is Seoul |the capital?
Give me a recipe ~for a smoothie.
What |is Venus |like?
11 times 5, |please.
Do you know ~how steel is made?
Tell me ~the word ~for the baby ~of an elephant.
Which language do I need ~in Indonesia?
Do you know ~who wrote Sherlock |Holmes?
What |color is red |and white |together?
How many days are in a year?
Convert 1 mile ~to yards.
Which city is the capital ~of Hungary?
Can you tell me ~a story |about a cat?
What |does 19 plus 14 make?
Can you tell me ~a story |about a pirate?
I want to make mashed potatoes.
Set the timer ~to 40 seconds.
Give me the capital ~of Kenya.
Do you know ~who wrote Romeo |and Juliet?
Which language is spoken ~in Indonesia?
I need a timer ~for 30 seconds.
What |weekday is it?
What |is the highest mountain?
In short, how do planes stay ~in the air?
Give me the capital ~of Ghana.
Start a timer ~for 2 minutes.
Explain the word ~lazy.
Count the legs ~of a cat.
Can you tell me ~a story |about a robot?
What |is the meaning ~of clever?
What |language do they speak ~in Australia?
Just briefly, how do planes stay ~in the air?
Give me the capital ~of Peru.
What |is the capital ~of Australia?
How many days are in August?
What |is butter |made ~of?
Give me the capital ~of Argentina.
Convert 1 kilometer ~to meters.
Tell me ~the currency ~of Japan.
Just briefly, where do rainbows come ~from?
What |can you tell ~me ~about Saturn?
Please translate ~water ~in Italian.
Give me the capital ~of Cuba.
Start a timer ~for 30 seconds.
How is wool ~made?
Do you know ~what 17 plus 9 is?
What |is the deepest lake |in the world?
Tell me ~the currency ~of Vietnam.
Tell me ~the word ~for the baby ~of a spider.
Who is the inventor ~of the battery?
What |noise does a wolf make?
Tell me ~what continent Japan is in.
What's the opposite ~of light?
Is a lion a bird |or a mammal?
How many hours are 9 days?
Of which country is Warsaw the capital?
How many days are in a week?
Tell me ~how to say please ~in German.
Start a timer ~for 25 minutes.
Read me a poem.
In short, what is gravity?
What |can I take ~instead of lemon juice?
How is soap ~made?
In one sentence, how do planes stay ~in the air?
Can you tell me ~a story |about a king?
I need to know ~96 ~divided by 12.
Who wrote Frankenstein?
8 plus 11, |please.
How much is 14 ~plus 3?
Tell me ~what comes ~after Tuesday.
Can you name the capital ~of Ghana?
Do you know ~the smallest planet?
Can you tell me ~a story |about a dragon?
What |sound does a pig make?
Lisbon is the capital ~of which country?
How many days are in February?
Which language do I need ~in Denmark?
Do you know ~the opposite ~of heavy?
""")
"""Questions of the starter models' domain on which neither of them was trained."""

LONG_ANSWERS = _sentences("""
Tell me ~a bedtime story.
Can you tell me ~a story |about a fox?
Can you tell me ~a story |about a dragon?
How does lightning work?
Can you tell me ~a story |about a mouse?
Can you tell me ~a story |about a princess?
What |is gravity?
Do you know ~a story |about a pirate?
Read me a poem.
Can you tell me ~a story |about a cat?
Where do rainbows come ~from?
How does photosynthesis work?
Can you tell me ~a story |about a robot?
Can you tell me ~a story |about a dog?
A story ~about a king, |please.
Can you tell me ~a story |about a ghost?
""")
"""Those whose answers have 25 words or more."""

INTERRUPTIONS = (
    "Stop.",
    "Wait.",
    "No, wait, what about Japan?",
    "Hold on.",
    "Tell me another one.",
    "Okay, stop.",
    "What time is it?",
    "Never mind.",
    "No, tell me a joke.",
    "That is enough.",
    "Shorter, please.",
    "No, stop.",
)
"""What is said to end an answer."""

BACKCHANNELS = ("Uh-huh.", "Okay.", "Hmm.", "Right.", "Yeah.", "Sure.", "Oh.")
"""What is said while one listens, and does not ask for the floor."""

AdditionKind = Literal["please", "now", "corrected", "more"]


@dataclass(frozen=True, slots=True)
class Addition:
    """Something said, and what it becomes when more is said after a pause."""

    kind: AdditionKind
    """`please`, `now` and `corrected` leave the answer as it was; `more` asks for another one."""
    first: str
    """As a recogniser would write it where the user had ended here."""
    longer: str

    @property
    def sentence(self) -> Sentence:
        """`longer`, of which `first` is the only beginning that is marked as whole."""
        words = self.longer.split()
        at = len(self.first.split())
        return sentence(" ".join([*words[:at], "|" + words[at], *words[at + 1 :]]))


def added(kind: AdditionKind, first: str, addition: str) -> Addition:
    """`first`, which ends with its mark, and `addition`, which ends with its own."""
    return Addition(kind, first, f"{first[:-1]}, {addition}")


_ADDED_TO = (
    "What is the capital of Australia?",
    "What is gravity?",
    "Can you tell me a story about a pirate?",
    "How does photosynthesis work?",
    "What noise does a wolf make?",
    "Who is the inventor of the battery?",
    "Where do rainbows come from?",
    "Give me a recipe for a smoothie.",
    "Who wrote Frankenstein?",
    "What language do they speak in Australia?",
    "Tell me what comes after June.",
    "Can you tell me a story about a robot?",
)

ADDITIONS = (
    *(added("please", text, f"please{text[-1]}") for text in _ADDED_TO),
    *(added("now", text, f"right now{text[-1]}") for text in _ADDED_TO),
    added("corrected", "What sound does the pig make?", "does a pig make?"),
    added("corrected", "How is the chocolate made?", "how is chocolate made?"),
    added("corrected", "Tell me the capital from Japan.", "the capital of Japan."),
    added("corrected", "Who has written Frankenstein?", "who wrote Frankenstein?"),
    added("corrected", "Give me the capital from Peru.", "of Peru."),
    added("corrected", "What is the deepest lake of the world?", "in the world?"),
    added("corrected", "What noise makes a wolf?", "what noise does a wolf make?"),
    added("corrected", "Give me a recipe of a smoothie.", "for a smoothie."),
    added("corrected", "Can you tell me a story of a cat?", "about a cat?"),
    added("corrected", "Where does rainbows come from?", "where do rainbows come from?"),
    added("corrected", "How many days is in February?", "are in February?"),
    added("corrected", "What's the opposite from light?", "of light?"),
    added("more", "What is the capital of Australia?", "and of Japan?"),
    added("more", "What is gravity?", "and where do rainbows come from?"),
    added("more", "How much is 14 plus 3?", "plus 9?"),
    added("more", "What noise does a wolf make?", "and what noise does a pig make?"),
    added("more", "Can you tell me a story about a cat?", "and a dog?"),
    added("more", "Start a timer for 2 minutes.", "and 30 seconds."),
)
"""A user who had finished, and goes on all the same."""
