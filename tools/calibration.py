"""Calibrates a language model on the bundled requests.

It prints areas under the ROC curve by kind of silence, the cost of each policy, and the entry for
shipped.toml.

    python -m tools.calibration starter --domain
    python -m tools.calibration path/of/a/model
    python -m tools.calibration path/of/a/model --spoken tiny.en --every 5

With --spoken the requests are spoken by flite and recognised first. The line `as it is known` then
shows how good the known calibration is on recognised words.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from tempfile import NamedTemporaryFile

import numpy as np

from lab.conversations.scores import roc_auc
from lab.conversations.sentences import QUESTIONS, Sentence
from voiceloop.assembly.loading import load_asr
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import samples, silence
from voiceloop.calibration.fitting import (
    JudgedSilence,
    calibrate,
    cost,
    probability_ms,
    shift_of,
    words_at,
)
from voiceloop.calibration.idle import judgements, written
from voiceloop.calibration.probability import comparable
from voiceloop.calibration.requests import CalibrationRequest, Cut, Kind, bundled_requests
from voiceloop.engines import Asr, AsrRequest
from voiceloop.languages import Language, bare, language
from voiceloop.process import configure
from voiceloop.settings.config import AsrConfig, Config, LlmConfig, TurnConfig
from voiceloop.types import Calibration, Pcm

PARTS: tuple[tuple[str, tuple[Kind, ...]], ...] = (
    ("incomplete, function word", ("function word",)),
    ("incomplete, content word", ("content word",)),
    ("incomplete, both", ("function word", "content word")),
    ("whole request that goes on", ("whole",)),
)


VOICES = ("slt", "rms", "awb", "kal16")
"""Voices of flite."""
PAUSE = silence(samples(500))
"""The silence that a recogniser hears after the words."""


def areas(judged: Sequence[JudgedSilence]) -> list[tuple[str, int, float, float]]:
    """Return for each kind of silence its name, its number, and two areas under the ROC curve.

    They say how well an end is distinguished from it by the end probability and by the last word.
    """

    scale = Calibration(0.0, 0.0, 0, shift_of(judged))

    def scores(kinds: Sequence[Kind]) -> tuple[list[float], list[float]]:
        own = [one for one in judged if one.kind in kinds]
        probabilities = [comparable(one.probability, scale, one.exchanges) for one in own]
        return probabilities, [float(not one.unfinished) for one in own]

    probabilities, words = scores(("end",))
    return [
        (name, len(own[0]), roc_auc(probabilities, own[0]), roc_auc(words, own[1]))
        for name, own in ((name, scores(kinds)) for name, kinds in PARTS)
        if own[0]
    ]


def in_kinds(sentence: Sentence, language: Language) -> CalibrationRequest:
    """Turn a sentence of the bench into a request with a cut after every word."""

    def cut(words: int) -> Cut:
        said = sentence.prefix(words)
        asks = language.asks_for_more(said)
        if words == len(sentence.words):
            return Cut(bare(said), "end", asks)
        if sentence.standings[words - 1] == "whole":
            return Cut(bare(said), "whole", asks)
        return Cut(bare(said), "function word" if asks else "content word", asks)

    cuts = tuple(cut(words + 1) for words in range(len(sentence.words)))
    return CalibrationRequest(sentence.text, "starter's domain", cuts)


def main() -> None:
    parser = argparse.ArgumentParser(description="Calibrate a language model")
    parser.add_argument("model", help="`starter`, a folder, or a name on the hub")
    parser.add_argument("--domain", action="store_true", help="the starter's domain, not the list")
    parser.add_argument("--spoken", metavar="ASR", help="as this recogniser understands them")
    parser.add_argument("--every", type=int, default=1, help="only every so many requests")
    parser.add_argument("--system", default="auto", help="the system prompt")
    parser.add_argument("--language", choices=sorted(bundled_requests()), action="append")
    given = parser.parse_args()
    configure(0)
    from voiceloop.llm.engine import speculative

    llm = speculative(LlmConfig(target=given.model, draft="none", system=given.system))
    found = {}
    for code, requests in bundled_requests().items():
        if given.language and code not in given.language:
            continue
        if given.domain and code == "en":
            requests = replace(
                requests, asked=tuple(in_kinds(one, language(code)) for one in QUESTIONS)
            )
        requests = replace(requests, asked=requests.asked[:: given.every])
        if given.spoken:
            asr = load_asr(Config(asr=AsrConfig(model=given.spoken)))
            requests = replace(requests, asked=understood(requests.asked, asr, language(code)))
        judged = [one for one in judgements(llm, requests) if one is not None]
        found[code] = calibrate(judged, TurnConfig())
        shipped = llm.calibrations.get(code)
        print(f"\n{code}: {len(requests.asked)} requests, {len(judged)} silences")
        print(f"{'area under the ROC curve':<30}{'silences':>10}{'P(end)':>10}{'last word':>11}")
        for name, count, probability, words in areas(judged):
            print(f"{name:<30}{count:>10}{probability:>10.3f}{words:>11.3f}")
        for name, calibration in (("calibrated here", found[code]), ("as it is known", shipped)):
            if calibration is None:
                print(f"{name}: the last word decides")
                continue
            own = cost(judged, probability_ms(judged, calibration, TurnConfig()))
            words = words_at(judged, own.delay_ms, TurnConfig())
            print(f"{name}: {calibration}")
            print(f"  probability {own}")
            print(f"  last word   {words}")
    print(f'\n[{llm.fingerprint}]\nfamily = "{llm.family}"\n{written(found, llm.name)}')


def understood(
    requests: Sequence[CalibrationRequest], asr: Asr, language: Language
) -> tuple[CalibrationRequest, ...]:
    """Return the requests with the words that `asr` understands.

    Each beginning of a request is spoken alone, as by a person who hesitates. Those without any
    recognised word are left out.
    """
    found = list[CalibrationRequest]()
    for request, voice in zip(requests, cycle(VOICES), strict=False):
        said = [*(f"{cut.words}," for cut in request.cuts[:-1]), request.text]
        cuts = list[Cut]()
        for text, cut in zip(said, request.cuts, strict=True):
            heard = asr.transcribe(AsrRequest(np.concatenate((_spoken(text, voice), PAUSE))))
            words = bare(" ".join(word.text for word in heard))
            if words:
                cuts.append(Cut(words, cut.kind, language.asks_for_more(words)))
        found.append(CalibrationRequest(request.text, request.style, tuple(cuts)))
    return tuple(found)


def _spoken(text: str, voice: str) -> Pcm:
    with NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", file.name], check=True)
        with AudioFile(file.name) as sound:
            return np.concatenate([*sound.blocks()])


if __name__ == "__main__":
    main()
