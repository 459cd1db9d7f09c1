"""The recogniser's tokenizer: byte-level BPE with Whisper's special tokens in Whisper's order.

Digits are single tokens, so unseen numbers are spelled like any other. faster-whisper and
CTranslate2 recognise the special tokens by name, and the model by the empty token before them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT_TOKENS = 1400
SPECIALS = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    "<|en|>",
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
    *(f"<|{i * 0.02:.2f}|>" for i in range(1501)),
)
PROMPT = ("<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")


def build(seed: int) -> Tokenizer:
    """Train the tokenizer on a sample of the domain and on common English words."""
    from models.train.domain import utterance
    from models.train.words import WORDS, salad

    def sample() -> Iterator[str]:
        rng = random.Random(seed)
        for _ in range(60_000):
            yield f" {utterance(rng)}"
        for _ in range(6_000):
            yield f" {salad(rng)}"
        for word in WORDS:
            yield from (f" {word}", f" {word.capitalize()}") * 4

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=TEXT_TOKENS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(sample(), trainer)
    state = json.loads(tokenizer.to_str())
    vocab = state["model"]["vocab"]
    vocab[""] = len(vocab)  # marks a multilingual Whisper
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIALS])
    return tokenizer


def load(folder: Path) -> Tokenizer:
    """Load the tokenizer from `folder`/tokenizer.json."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def targets(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the decoder's token ids for a transcript, from start-of-transcript to end-of-text.

    As in Whisper, text has a leading space.
    """
    prompt = [tokenizer.token_to_id(token) for token in PROMPT]
    words = tokenizer.encode(f" {text}", add_special_tokens=False).ids if text else []
    return [*prompt, *words, tokenizer.token_to_id("<|endoftext|>")]
