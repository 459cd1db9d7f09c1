"""Exports training weights as a model for faster-whisper, and measures it.

Measurements run the exported int8 model in CTranslate2, greedy and without padding, as the
assistant does.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import jiwer
import numpy as np
import torch
from ctranslate2 import StorageView
from ctranslate2.converters import TransformersConverter
from ctranslate2.models import Whisper
from num2words import num2words
from transformers import (
    PreTrainedTokenizerFast,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

from models.train import asr_tokenizer
from models.train.asr_data import LONGEST_S, Example
from models.train.asr_model import config

FILES = ("tokenizer.json", "preprocessor_config.json")


def export(weights: dict[str, torch.Tensor], tokenizer_folder: Path, out: Path) -> None:
    """Write an int8 CTranslate2 model to `out`, with the other files that faster-whisper needs.

    `weights` is the state of a `WhisperForConditionalGeneration`."""
    tokenizer = asr_tokenizer.load(tokenizer_folder)
    model = WhisperForConditionalGeneration(config(tokenizer))
    model.load_state_dict({k: v.float() for k, v in weights.items()})
    generation = model.generation_config
    generation.suppress_tokens = []
    generation.begin_suppress_tokens = []
    generation.alignment_heads = [
        [model.config.decoder_layers - 1, head]
        for head in range(model.config.decoder_attention_heads)
    ]
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
        WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
        # These plain files suffice: the mel filters are computed.
        tokenizer.save(f"{folder}/tokenizer.json", pretty=False)
        converter = TransformersConverter(folder, copy_files=list(FILES))
        with tempfile.TemporaryDirectory() as converted:
            # The few weights that int8 does not cover (positions) are stored in half precision.
            converter.convert(converted, quantization="int8_float16", force=True)
            settings = Path(converted) / "config.json"
            known = json.loads(settings.read_text())
            known["lang_ids"] = [tokenizer.token_to_id("<|en|>")]  # the converter finds none
            settings.write_text(json.dumps(known, indent=1) + "\n")
            # The engine has to know that utterances were never padded.
            windows = {"longest_s": LONGEST_S, "any_length": True}
            (Path(converted) / "windows.json").write_text(json.dumps(windows) + "\n")
            out.mkdir(parents=True, exist_ok=True)
            for file in Path(converted).iterdir():
                shutil.copyfile(file, out / file.name)


class Decoder:
    """A greedy decoder of features with an exported model."""

    def __init__(self, folder: Path) -> None:
        self.model = Whisper(str(folder), compute_type="int8", intra_threads=1)
        self.tokenizer = asr_tokenizer.load(folder)
        self.prompt = [self.tokenizer.token_to_id(token) for token in asr_tokenizer.PROMPT]

    def __call__(self, features: np.ndarray) -> str:
        """Return the text of `features`, float32 [80, frames]."""
        if (features.shape[1] + 1) // 2 == len(features):
            # CTranslate2 would take as many states as mel bands for features.
            features = np.pad(features, ((0, 0), (0, 2)), mode="edge")
        states = self.model.encode(StorageView.from_array(np.ascontiguousarray(features[None])))
        limit = len(self.prompt) + 12 + features.shape[1] // 6
        result = self.model.generate(
            states,
            [self.prompt],
            beam_size=1,
            max_length=limit,
            suppress_blank=False,
            suppress_tokens=[],
        )
        return self.tokenizer.decode(result[0].sequences_ids[0]).strip()


def measure(decode: Decoder, examples: Sequence[Example]) -> dict[str, float]:
    """Return figures by name.

    `wer` is the word error rate of normalised words, `exact` the share of clips without an error,
    `mark` the share with the right final mark, and `false_text` the share of clips without speech
    that gave text.
    """
    heard = [decode(example.features()) for example in examples]
    said = [example.text for example in examples]
    pairs = [(normalise(s), normalise(h)) for s, h in zip(said, heard, strict=True)]
    spoken = [(s, h) for s, h in pairs if s]
    silent = [h for s, h in pairs if not s]
    figures: dict[str, float] = {"clips": len(pairs)}
    if spoken:
        figures["wer"] = jiwer.wer([s for s, _ in spoken], [h for _, h in spoken])
        figures["exact"] = float(np.mean([s == h for s, h in spoken]))
        marks = [
            s[-1:] == h[-1:] or (s[-1:].isalnum() and h[-1:].isalnum())
            for s, h in zip(said, heard, strict=True)
            if s
        ]
        figures["mark"] = float(np.mean(marks))
    if silent:
        figures["false_text"] = float(np.mean([bool(h) for h in silent]))
    return figures


def normalise(text: str) -> str:
    """Normalise text: lower case, no punctuation, numbers as words."""
    text = re.sub(r"\d+", lambda m: f" {num2words(int(m[0]))} ", text.lower())
    return " ".join(re.sub(r"[^a-z' ]", " ", text.replace("-", " ")).split())


def mistakes(decode: Decoder, examples: Sequence[Example], count: int) -> Iterator[str]:
    """Yield up to `count` wrong transcripts, each with the right text."""
    for example in examples:
        heard = decode(example.features())
        if normalise(heard) != normalise(example.text):
            yield f"{example.text!r} -> {heard!r}"
            count -= 1
            if not count:
                return


def report(folder: Path, sets: dict[str, Sequence[Example]]) -> dict[str, dict[str, float]]:
    """Return the figures of `measure` for every set, by name."""
    decode = Decoder(folder)
    return {name: measure(decode, examples) for name, examples in sets.items()}


def table(figures: dict[str, dict[str, float]]) -> str:
    """Return the figures as the Markdown table of the model card."""
    columns = {"wer": "WER", "exact": "exact", "mark": "mark", "false_text": "false text"}
    lines = [f"| test set | clips | {' | '.join(columns.values())} |", "|---|" + "---:|" * 5]
    for name, row in figures.items():
        cells = [f"{row[key]:.1%}" if key in row else "" for key in columns]
        lines.append(f"| {name} | {row['clips']:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write(figures: dict[str, dict[str, float]], path: Path, card: Path) -> None:
    """Write the figures as JSON to `path`, and as a table between the marks of the model card."""
    path.write_text(json.dumps(figures, indent=1) + "\n")
    if card.exists():
        head, _, rest = card.read_text().partition("<!-- figures -->\n")
        _, end, tail = rest.partition("<!-- /figures -->")
        card.write_text(f"{head}<!-- figures -->\n{table(figures)}\n{end}{tail}")
