"""Dialogues as token ids: the tokenizer, the chat template, loss weights, and batches.

This module knows the domain's `Message`s and the tokenizer, but no model.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from models.train.domain import QUOTING, Message, dialogue

VOCABULARY = 4096
CONTEXT = 2048
LONGEST = 1024
"""Most tokens of a training row."""

END = "<|im_end|>"
PAD = "<|endoftext|>"
SPECIAL = (PAD, "<|im_start|>", END)
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")

# A role with its line end is one piece at the start of a message; each digit is a piece.
PIECES = (
    r"\A(?:system|user|assistant)\n|'(?:[sdmt]|ll|ve|re)"
    r"| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)

TEMPLATE = """\
{%- if tools -%}
{{- '<|im_start|>system\\n' -}}
{%- if messages and messages[0].role == 'system' -%}
{{- messages[0].content + '\\n\\n' -}}
{%- endif -%}
{{- 'Tools:\\n<tools>' -}}
{%- for tool in tools -%}{{- '\\n' + tool | tojson -}}{%- endfor -%}
{{- '\\n</tools><|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content -}}
{{- '\\n</tool_response><|im_end|>\\n' -}}
{%- elif not (tools and loop.first and message.role == 'system') -%}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') -}}
{%- for call in message.tool_calls or [] -%}
{%- set call = call.function or call -%}
{%- if message.content or not loop.first -%}{{- '\\n' -}}{%- endif -%}
{{- '<tool_call>\\n{"name": "' + call.name + '", "arguments": ' -}}
{{- call.arguments if call.arguments is string else call.arguments | tojson -}}
{{- '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""

TOOLS = (
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "The time, the day of the week and the date.",
            "parameters": {"type": "object", "properties": {}},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "set_timer",
            "description": "Set a timer.",
            "parameters": {
                "type": "object",
                "properties": {
                    unit: {"type": "integer"}
                    for unit in ("hours", "minutes", "seconds")
                },
            },
        },
    },
)  # fmt: skip
"""The starter tools as a system message lists them."""


def train_tokenizer(folder: Path, seed: int, dialogues: int = 60_000) -> PreTrainedTokenizerFast:
    """Train the byte-level BPE on a sample of the domain, and save it in `folder`."""
    rng = random.Random(f"tokenizer {seed}")

    def sample() -> Iterator[str]:
        for _ in range(dialogues):
            for message in dialogue(rng):
                role = "user" if message.role == "tool" else message.role
                yield f"{role}\n"
                yield message.text.lower() if rng.random() < 0.05 else message.text

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        sample(),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY - len(MARKS),
            special_tokens=list(SPECIAL),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT,
    )
    fast.add_tokens(list(MARKS))
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    return fast


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Load the tokenizer that `train_tokenizer` saved."""
    return PreTrainedTokenizerFast.from_pretrained(folder)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Row:
    """Token ids with the weight and the kind of each token's loss."""

    ids: list[int]
    weights: list[float]
    kinds: list[int]
    """Indices into `KINDS`. 0: no loss; 1: the user's words; 2: the end of the user's turn;
    3: the assistant."""


KINDS = ("none", "user", "end of turn", "assistant")
# The user's words have a low weight, since they are mostly unpredictable. The end of their turn
# has the same weight, or P(end of turn) would be biased.
WEIGHTS = (0.0, 0.15, 0.15, 1.0)


class Encoder:
    """An encoder of messages, in the format of the chat template and with loss weights."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        self.start, self.end = self.encode("<|im_start|>")[0], self.encode(END)[0]
        self.line = self.encode("\n")[0]
        self.roles = {role: self.encode(f"{role}\n") for role in ("system", "user", "assistant")}
        self.tools = self.encode(self._tools_message(None))

    def encode(self, text: str) -> list[int]:
        """Encode plain text."""
        return self.tokenizer.encode(text, add_special_tokens=False)

    def _tools_message(self, system: str | None) -> str:
        """Render the system message that lists the tools, after the text `system` if any."""
        chat = [{"role": "system", "content": system}] if system else []
        chat.append({"role": "user", "content": ""})
        text = self.tokenizer.apply_chat_template(chat, tools=list(TOOLS), tokenize=False)
        return str(text).partition("<|im_start|>user")[0]

    def message(self, message: Message) -> Row:
        """Encode one message as the template writes it."""
        role, text = message.role, message.text
        if role == "tool":
            role, text = "user", f"<tool_response>\n{text}\n</tool_response>"
        head = [self.start, *self.roles[role]]
        body = self.encode(text)
        kind = {"assistant": 3, "user": 1}.get(role, 0) if message.learn else 0
        ids, kinds = head + body, [0] * len(head) + [kind] * len(body)
        if message.complete:
            ids += [self.end, self.line]
            kinds += [2 if kind == 1 else kind, 0]
        return Row(ids, [WEIGHTS[kind] for kind in kinds], kinds)

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids after which the assistant's reply to `messages` begins."""
        ids = [token for message in messages for token in self.message(message).ids]
        return [*ids, self.start, *self.roles["assistant"]]

    def dialogue(self, messages: Sequence[Message], *, tools: bool = False) -> Row:
        """Encode a whole dialogue; with `tools` the system message lists them."""
        row = Row([], [], [])
        if tools:
            system = messages[0].text if messages[0].role == "system" else None
            messages = messages[1:] if system else messages
            head = self.encode(self._tools_message(system)) if system else self.tools
            row = Row(list(head), [0.0] * len(head), [0] * len(head))
        return join([row, *map(self.message, messages)])


def join(rows: Sequence[Row]) -> Row:
    """Concatenate rows."""
    return Row(
        [token for row in rows for token in row.ids],
        [weight for row in rows for weight in row.weights],
        [kind for row in rows for kind in row.kinds],
    )


SUM = re.compile(r"(\d+) (plus|minus|times|divided by) (\d+)")
SIGNS = {"plus": "+", "minus": "-", "times": "*x×", "divided by": "/÷"}  # noqa: RUF001


def _in_signs(text: str, rng: random.Random) -> str:
    space = rng.choice(("", " "))
    return SUM.sub(lambda m: f"{m[1]}{space}{rng.choice(SIGNS[m[2]])}{space}{m[3]}", text)


def as_written(messages: list[Message], rng: random.Random) -> list[Message]:
    """Return `messages` with variations of spelling, as recognisers write and people type.

    Some have no final mark, some have neither marks nor capitals, and some have sums in signs. The
    assistant reads P(end of turn) after a transcript without its final mark.
    """
    bare = rng.random() < 0.2
    signs = rng.random() < (0.5 if bare else 0.15)
    written: dict[str, str] = {}
    changed: list[Message] = []
    for message in messages:
        text = message.text
        if message.role == "user":
            if signs:
                text = _in_signs(text, rng)
            if bare:
                text = "".join(c for c in text.lower() if c not in ".,?!")
            elif rng.random() < 0.3:
                text = text.rstrip(".?!")
            written[message.text] = text
        elif text.startswith(QUOTING):
            said = text.removeprefix(QUOTING)
            text = QUOTING + written.get(said, said)
        changed.append(Message(message.role, text, message.learn, message.complete))
    return changed


def draw_row(encoder: Encoder, rng: random.Random) -> Row:
    """Draw a row: one dialogue, or several in sequence up to a random length."""
    shortest, longest = rng.choices(((0, 0), (100, 256), (256, LONGEST)), (62, 35, 3))[0]
    budget = rng.randint(shortest, longest)
    rows: list[Row] = []
    length = 0
    while True:
        messages = dialogue(rng)
        # Sums and conversions are learnt last, so dialogues with numbers are drawn more often.
        if rng.random() < 0.5 and not any(c.isdigit() for m in messages for c in m.text):
            continue
        messages = as_written(messages, rng)
        if rows:
            messages = [message for message in messages if message.role != "system"]
        row = encoder.dialogue(messages, tools=not rows and rng.random() < 0.04)
        if rows and length + len(row.ids) > budget:
            break
        rows.append(row)
        length += len(row.ids)
        if length >= budget or not messages[-1].complete:
            break
    whole = join(rows)
    return Row(whole.ids[:LONGEST], whole.weights[:LONGEST], whole.kinds[:LONGEST])


@dataclass(frozen=True)
class Batch:
    """A batch of rows of similar length, padded on the right."""

    ids: Tensor
    """[rows, length]"""
    rows: list[Row]
    where: Tensor
    """Flat positions with a loss for their next token, [positions]."""
    targets: Tensor
    """The k possible next tokens of each, [positions, k]."""
    shares: Tensor
    """The probability of each target, [positions, k]."""
    weights: Tensor
    kinds: Tensor


def bucket(length: int) -> int:
    """Return the padded length of a row. Longer rows have wider steps, so there are few shapes."""
    step = 16 if length <= 160 else 32 if length <= 256 else 128
    return -(-length // step) * step


def collate(rows: list[Row], length: int) -> Batch:
    """Make a batch of rows, none longer than `length`."""
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    weights = torch.zeros(len(rows), length)
    kinds = torch.zeros(len(rows), length, dtype=torch.long)
    for i, row in enumerate(rows):
        n = len(row.ids)
        ids[i, :n] = torch.tensor(row.ids)
        weights[i, : n - 1] = torch.tensor(row.weights[1:])
        kinds[i, : n - 1] = torch.tensor(row.kinds[1:])
    where = weights.view(-1).nonzero()[:, 0]
    targets = ids.view(-1).roll(-1)[where, None]
    shares = torch.ones(len(where), 1)
    return Batch(ids, rows, where, targets, shares, weights.view(-1)[where], kinds.view(-1)[where])


def batches(encoder: Encoder, rng: random.Random, tokens: int) -> Iterator[Batch]:
    """Yield endless batches of up to `tokens` tokens with padding, in random order of length."""
    waiting: dict[int, list[Row]] = {}
    while True:
        ready: list[Batch] = []
        while len(ready) < 16:
            row = draw_row(encoder, rng)
            length = bucket(len(row.ids))
            waiting.setdefault(length, []).append(row)
            if len(waiting[length]) * length > tokens - length:
                ready.append(collate(waiting.pop(length), length))
        rng.shuffle(ready)
        yield from ready
