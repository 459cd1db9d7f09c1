"""The second recogniser's language: `python -m models.train.sphinx` writes models/starter/sphinx/.

The acoustic model comes with pocketsphinx, trained on human speech. Here a trigram model and a
pronouncing dictionary are made from the starter domain: what users say and what is answered. Their
words are the *written* forms, capital and punctuation included ("6?" sounds like "six"), so what is
recognised needs no rewriting. Pronunciations come from pocketsphinx's dictionary; the few words it
lacks are spoken by espeak-ng and their phonemes mapped. Ends with a measurement, which the model
card quotes.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import jiwer
import numpy as np
import pocketsphinx
from num2words import num2words

from models.train.asr_export import normalise
from models.train.domain import dialogue, utterance
from models.train.voices import Voice, _espeak_library, render
from voiceloop.asr.sphinx import DICTIONARY, LANGUAGE, Sphinx
from voiceloop.audio.frames import SPEECH_RATE, Resampler

UTTERANCES, DIALOGUES = 120_000, 30_000
MOST = 40
"""A sentence counts at most this often, so that fixed texts do not drown what varies."""
DISCOUNT = 0.6
LONGEST = 3
BEGIN, END = "<s>", "</s>"
JUDGES = (Voice("flite", "slt"), Voice("flite", "rms"), Voice("flite", "awb"))
SPEAKER = Voice("espeak", "en-us")
"""The voice that speaks replies."""
SPELLED = {"AM": "a. m.", "PM": "p. m."}

# espeak-ng's phonemes of American English and the acoustic model's; the longest match counts.
_PHONES = (
    *"aɪ=AY aʊ=AW eɪ=EY oʊ=OW ɔɪ=OY tʃ=CH dʒ=JH ɑː=AA ɔː=AO oː=AO iː=IY uː=UW".split(),  # noqa: RUF001
    *"ɜː=ER ɪə=IH_R ɑ=AA æ=AE a=AA ʌ=AH ə=AH ɐ=AH ɔ=AO ɛ=EH e=EH ɚ=ER ɜ=ER ɪ=IH".split(),  # noqa: RUF001
    *"ᵻ=IH i=IY o=OW ʊ=UH u=UW b=B d=D ð=DH f=F ɡ=G h=HH k=K l=L m=M n=N ŋ=NG p=P".split(),  # noqa: RUF001
    *"ɹ=R r=R s=S ʃ=SH t=T ɾ=T ʔ=T θ=TH v=V w=W j=Y z=Z ʒ=ZH x=K ç=HH ʁ=R".split(),  # noqa: RUF001
)
IPA: dict[str, str] = {ipa: phone for ipa, _, phone in (pair.partition("=") for pair in _PHONES)}

# ---- what is said


def sentences(rng: random.Random) -> Iterator[str]:
    """Users' and assistant's texts of the whole domain, each at most `MOST` times.

    A judge has to know every phrasing, so what is held out from the other models is in here.
    """
    counts: Counter[str] = Counter()
    texts = (utterance(rng, "train" if i % 3 else "heldout") for i in range(UTTERANCES))
    replies = (
        message.text
        for i in range(DIALOGUES)
        for message in dialogue(rng, "train" if i % 3 else "heldout")
        if message.role == "assistant" and not message.text.startswith("<")
    )
    for source in (texts, replies):
        for text in source:
            counts[text] += 1
            if counts[text] <= MOST:
                yield text


def words(text: str) -> list[str]:
    """The written words of a text; quotation marks and brackets are not written."""
    return [word for word in re.sub(r'["()<>]', "", text).split() if re.search(r"\w", word)]


# ---- how it sounds


@cache
def dictionary() -> dict[str, list[str]]:
    """pocketsphinx's pronunciations of each word."""
    sounds: dict[str, list[str]] = defaultdict(list)
    path = Path(pocketsphinx.get_model_path()) / "en-us" / "cmudict-en-us.dict"
    for line in path.read_text().splitlines():
        word, _, phones = line.partition(" ")
        sounds[re.sub(r"\(\d+\)$", "", word)].append(phones)
    return sounds


def spoken(word: str) -> list[list[str]]:
    """The ways of reading a written word aloud, each as dictionary words."""
    bare = word.strip(".,?!:;'")
    if bare in SPELLED:
        return [SPELLED[bare].split()]
    if clock := re.fullmatch(r"(\d+):(\d\d)", bare):
        hour, minute = clock.groups()
        middle = ["oh"] if minute[0] == "0" and minute != "00" else []
        rest = ["o'clock"] if minute == "00" else [*middle, *read(int(minute))]
        return [read(int(hour)) + rest, read(int(hour)) + [w for w in rest if w != "o'clock"]]
    if re.fullmatch(r"\d+", bare):
        whole = read(int(bare))
        ways = [whole, [w for w in whole if w != "and"], read(int(bare), to="ordinal")]
        return [way for i, way in enumerate(ways) if way not in ways[:i]]
    if re.fullmatch(r"\d+\.\d+", bare):
        return [num2words(float(bare)).replace("-", " ").split()]
    return [[part for part in bare.lower().split("-") if part]]


def read(number: int, to: str = "cardinal") -> list[str]:
    """A number in words."""
    return num2words(number, to=to).replace("-", " ").replace(",", "").split()


def pronunciations(word: str) -> list[str]:
    """All of a written word's; of one of several parts each part is read the first way only."""
    ways: list[str] = []
    for parts in spoken(word):
        if len(parts) == 1:
            ways += sounds(parts[0])
        else:
            ways.append(" ".join(sounds(part)[0] for part in parts))
    return list(dict.fromkeys(ways))


@cache
def sounds(word: str) -> list[str]:
    """Pronunciations of a word in lower case, by espeak-ng where the dictionary lacks it."""
    return dictionary().get(word) or dictionary().get(word.strip("'")) or [espeak(word)]


def espeak(word: str) -> str:
    """espeak-ng's phonemes as the acoustic model names them."""
    library = _espeak_library().lib
    library.espeak_SetVoiceByName(b"en-us")
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    text = ctypes.c_char_p(word.encode())
    characters, ipa = 1, 2
    heard = library.espeak_TextToPhonemes(ctypes.byref(text), characters, ipa).decode()
    heard = re.sub("[ˈˌ̩ʲ ]|\\([a-z-]+\\)", "", heard)
    phones: list[str] = []
    while heard:
        match = next((p for p in sorted(IPA, key=len, reverse=True) if heard.startswith(p)), None)
        if match:
            phones += IPA[match].split("_")
        heard = heard[len(match or heard[0]) :]
    return " ".join(phones)


# ---- how likely it is


def ngrams(texts: Iterable[list[str]]) -> list[Counter[tuple[str, ...]]]:
    """Counts of the sequences of 1, 2 and 3 words."""
    counts: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(LONGEST)]
    for text in texts:
        line = [BEGIN, *text, END]
        for order, count in enumerate(counts, start=1):
            count.update(tuple(line[i : i + order]) for i in range(len(line) - order + 1))
    return counts


def arpa(counts: list[Counter[tuple[str, ...]]]) -> str:
    """A back-off model with absolute discounting (Ney, Essen, Kneser 1994) in ARPA format."""
    total = sum(count for (word,), count in counts[0].items() if word != BEGIN)
    probability: dict[tuple[str, ...], float] = {
        gram: 1e-99 if gram == (BEGIN,) else count / total for gram, count in counts[0].items()
    }
    left: dict[tuple[str, ...], float] = {}
    for count in counts[1:]:
        following: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
        for gram in count:
            following[gram[:-1]].append(gram)
        for context, grams in following.items():
            seen = sum(count[gram] for gram in grams)
            lower = sum(probability[gram[1:]] for gram in grams)
            for gram in grams:
                probability[gram] = (count[gram] - DISCOUNT) / seen
            spare = DISCOUNT * len(grams) / seen
            left[context] = spare / max(1e-9, 1 - lower)
    lines = ["\\data\\"]
    lines += [f"ngram {order}={len(count)}" for order, count in enumerate(counts, start=1)]
    for order, count in enumerate(counts, start=1):
        lines += ["", f"\\{order}-grams:"]
        for gram in sorted(count):
            back = f" {math.log10(left[gram]):.4f}" if gram in left else ""
            lines.append(f"{math.log10(probability[gram]):.4f} {' '.join(gram)}{back}")
    return "\n".join([*lines, "", "\\end\\", ""])


# ---- the files, and how good they are


def write(out: Path, seed: int) -> None:
    """Make both files in `out`."""
    texts = [words(text) for text in sentences(random.Random(seed))]
    texts += [[f"{number}{mark}"] for number in range(101) for mark in ("", "?", ".")]
    vocabulary = sorted({word for text in texts for word in text})
    out.mkdir(parents=True, exist_ok=True)
    lines = [
        f"{word}{f'({i})' if i > 1 else ''} {phones}"
        for word in vocabulary
        for i, phones in enumerate(pronunciations(word), start=1)
    ]
    (out / DICTIONARY).write_text("\n".join(lines) + "\n", encoding="utf-8")
    counts = ngrams(texts)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "domain.arpa"
        text.write_text(arpa(counts), encoding="utf-8")
        settings, logarithm = pocketsphinx.Config(loglevel="FATAL"), pocketsphinx.LogMath()
        model = pocketsphinx.NGramModel(settings, logarithm, str(text))
        model.write(str(out / LANGUAGE))
    print(
        f"{len(texts)} texts, {len(vocabulary)} written words, "
        f"{', '.join(f'{len(count)} {n}-grams' for n, count in enumerate(counts, start=1))}"
    )


def measure(folder: Path, seed: int, count: int) -> list[str]:
    """Word error rates on questions and on replies, as lines of a table."""
    engine = Sphinx(folder)
    rng = random.Random(seed)
    asked = [utterance(rng, "heldout") for _ in range(count)]
    replies: list[str] = []
    while len(replies) < count:
        last = dialogue(rng, "heldout")[-1]
        if last.role == "assistant" and not last.text.startswith("<"):
            replies.append(last.text)
    rows = [(f"questions, {voice.name}", asked, voice) for voice in (*JUDGES, SPEAKER)]
    rows.append((f"replies, {SPEAKER.name}", replies, SPEAKER))
    lines: list[str] = []
    for name, texts, voice in rows:
        heard = [hear(engine, text, voice) for text in texts]
        said = [normalise(text) for text in texts]
        wer = jiwer.wer(said, [normalise(text) for text in heard])
        same = np.mean([a == b for a, b in zip(texts, heard, strict=True)])
        lines.append(f"| {name} | {len(texts)} | {100 * wer:.1f} % | {100 * same:.0f} % |")
        for text, other in zip(texts, heard, strict=True):
            if normalise(text) != normalise(other):
                print(f"{voice.name}: {text!r} -> {other!r}")
    return lines


def hear(engine: Sphinx, text: str, voice: Voice) -> str:
    """What the engine recognises of a voice's rendering."""
    speech = render(text, voice)
    resampler = Resampler(speech.rate, SPEECH_RATE)
    pcm = np.concatenate((resampler.feed(speech.pcm), resampler.flush()))
    pcm = np.pad(pcm, SPEECH_RATE // 5)
    return " ".join(word.text for word in engine.transcribe(pcm, final=True))


CARD = """# Sphinx: the second recogniser

A trigram model (`{language}`) and a pronouncing dictionary (`{dictionary}`) of the starter
domain, for the acoustic model of American English that the package `pocketsphinx` carries (BSD
licence, trained on human speech). It knows the domain's words and nothing else.

Made by `python -m models.train.sphinx` from generated text alone, seed {seed}, and measured by the
same command on sentences that the same generator drew with another seed, so most of their word
sequences are known to the model:

| spoken text, voice | sentences | word error rate | exactly as written |
| --- | --- | --- | --- |
{rows}

`slt`, `rms` and `awb` are voices of flite, made from recordings of people; `en-us` is espeak-ng.
"""


def main() -> None:
    """Write the files, measure them, and write the card."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path("models/starter/sphinx"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="sentences to measure on")
    arguments = parser.parse_args()
    write(arguments.out, arguments.seed)
    rows = measure(arguments.out, arguments.seed + 1, arguments.count)
    print("\n".join(rows))
    card = CARD.format(
        language=LANGUAGE, dictionary=DICTIONARY, seed=arguments.seed,
        rows="\n".join(rows),
    )  # fmt: skip
    (arguments.out / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
