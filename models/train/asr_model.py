"""The small Whisper, its loss and its optimiser.

The network is transformers' `WhisperForConditionalGeneration`, run without its 30 s window: the
encoder sees only the utterance, as it does in the assistant. Matrix products are in bfloat16; the
optimiser updates weights in float32. This module does not know where examples come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import WhisperConfig, WhisperForConditionalGeneration

LETTERS = " abcdefghijklmnopqrstuvwxyz'0123456789"
"""The characters of the CTC head on the encoder; label 0 is the blank, the others count from 1."""
AVERAGE_EVERY = 8
LOCAL = 1.3
"""Gain of queries and keys in a fresh encoder; its heads attend to about five positions."""


def config(tokenizer: Tokenizer) -> WhisperConfig:
    """Return the configuration of the model: 7 M parameters, half of them in the encoder."""
    size = tokenizer.get_vocab_size()
    eot = tokenizer.token_to_id("<|endoftext|>")
    return WhisperConfig(
        vocab_size=size,
        num_mel_bins=80,
        d_model=256,
        encoder_layers=5,
        encoder_attention_heads=4,
        encoder_ffn_dim=768,
        decoder_layers=2,
        decoder_attention_heads=4,
        decoder_ffn_dim=768,
        max_source_positions=1500,
        max_target_positions=448,
        dropout=0.0,
        pad_token_id=eot,
        bos_token_id=eot,
        eos_token_id=eot,
        decoder_start_token_id=tokenizer.token_to_id("<|startoftranscript|>"),
        suppress_tokens=[],
        begin_suppress_tokens=[],
    )


def initialise(whisper: WhisperForConditionalGeneration) -> None:
    """Initialise the encoder as a stack of local filters, which avoids a long plateau of the loss.

    A linear map can shift sinusoids (Vaswani et al. 2017, section 3.5), so there are queries and
    keys with which a head attends to the position `shift` away. The convolutions get weights large
    enough beside the position embeddings.
    """
    encoder = whisper.model.encoder
    size = whisper.config.d_model
    heads = whisper.config.encoder_attention_heads
    width = size // heads
    half = size // 2  # Whisper's positions are the sines, then the cosines, of these frequencies:
    frequency = 10_000.0 ** (-torch.arange(width // 2) / (half - 1))
    sines = torch.arange(width // 2)
    with torch.no_grad():
        for conv, gain in ((encoder.conv1, 1.5), (encoder.conv2, 2.0)):
            conv.weight.normal_(0, gain / math.sqrt(conv.weight[0].numel()))
        for module in whisper.modules():
            if isinstance(module, nn.Linear) and module is not whisper.proj_out:
                nn.init.xavier_uniform_(module.weight)
        for layer in (*encoder.layers, *whisper.model.decoder.layers):
            layer.fc2.weight.mul_(0.3)  # small, so positions reach the top layer
        for layer in encoder.layers:
            layer.self_attn.out_proj.weight.mul_(0.3)
        for depth, layer in enumerate(encoder.layers):
            query = layer.self_attn.q_proj.weight.view(heads, width, size).mul_(0.3)
            key = layer.self_attn.k_proj.weight.view(heads, width, size).mul_(0.3)
            for head in range(heads):
                shift = (depth + 1) * (head - (heads - 1) / 2) * 1.5
                cos, sin = torch.cos(frequency * shift), torch.sin(frequency * shift)
                even, odd = 2 * sines, 2 * sines + 1
                query[head, even, sines] += LOCAL * cos
                query[head, even, sines + half] += LOCAL * sin
                query[head, odd, sines + half] += LOCAL * cos
                query[head, odd, sines] -= LOCAL * sin
                key[head, even, sines] += LOCAL
                key[head, odd, sines + half] += LOCAL


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of n padded examples.

    `mel` is float32 [n, 80, frames], of which `frames` [n] are valid. `tokens` [n, length] begin
    with start-of-transcript and are -100 after the end. `letters` [total] are the labels of CTC for
    all examples, `spelled` [n] the number for each.
    """

    mel: Tensor
    frames: Tensor
    tokens: Tensor
    letters: Tensor
    spelled: Tensor


class Recogniser(nn.Module):
    """Whisper with a CTC head, which is not exported: it teaches the encoder the times of words."""

    def __init__(self, whisper: WhisperForConditionalGeneration, no_speech: int) -> None:
        super().__init__()
        self.whisper = whisper
        self.no_speech = no_speech
        self.ctc = nn.Linear(whisper.config.d_model, len(LETTERS) + 1)

    def encode(self, mel: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return encoder states [n, positions, d] of padded features, and a mask of valid ones.

        The mask is bool [n, positions]. Each example has the same states as it would have alone.
        """
        encoder = self.whisper.model.encoder
        inside = torch.arange(mel.shape[-1]) < frames[:, None]
        x = mel.to(encoder.conv1.weight.dtype) * inside[:, None]
        # After the end the second convolution must see zeros, as it would without padding.
        x = F.gelu(encoder.conv1(x)) * inside[:, None]
        x = F.gelu(encoder.conv2(x)).transpose(1, 2)
        x = x + encoder.embed_positions.weight[: x.shape[1]]
        valid = inside[:, ::2]
        mask = _additive(valid, x.dtype)
        for layer in encoder.layers:
            x = layer(x, mask)
        return encoder.layer_norm(x), valid

    def loss(self, batch: Batch, smoothing: float = 0.05) -> tuple[Tensor, Tensor]:
        """Return the attention loss per token and the CTC loss per letter, scalars in float32."""
        states, valid = self.encode(batch.mel, batch.frames)
        inputs = batch.tokens[:, :-1].clamp_min(0)
        decoder = self.whisper.model.decoder
        length = inputs.shape[1]
        x = decoder.embed_tokens(inputs) + decoder.embed_positions.weight[:length]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        causal = _additive(causal[None].expand(len(inputs), -1, -1), x.dtype)
        cross = _additive(valid, x.dtype)
        for layer in decoder.layers:
            x = layer(
                x,
                causal,
                encoder_hidden_states=states,
                encoder_attention_mask=cross,
                use_cache=False,
            )
        x = decoder.layer_norm(x)
        goal = batch.tokens[:, 1:].clone()
        goal[:, 1:3] = -100  # the rest of the prompt is given, never predicted
        goal[batch.spelled == 0, 0] = self.no_speech  # so no_speech_prob means something
        wanted = goal != -100
        logits = (x[wanted] @ self.whisper.proj_out.weight.T).float()
        attention = F.cross_entropy(logits, goal[wanted], label_smoothing=smoothing)
        heard = batch.spelled > 0
        if not heard.any():  # a batch without speech has nothing to spell
            return attention, attention.new_zeros(())
        spelling = F.log_softmax(self.ctc(states).float(), -1).transpose(0, 1)
        ctc = F.ctc_loss(
            spelling[:, heard],
            batch.letters,
            valid.sum(1)[heard],
            batch.spelled[heard],
            reduction="sum",
            zero_infinity=True,
        ) / max(1, len(batch.letters))
        return attention, ctc


def _additive(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a bool mask into one to add to attention scores: -1e4 where it is False.

    `allowed` is [n, keys] or [n, queries, keys]; the result is [n, 1, 1 or queries, keys].
    """
    mask = torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, -1e4)
    return mask[:, None] if mask.dim() == 3 else mask[:, None, None]


class Optimiser:
    """Muon (Jordan 2024) on the matrices of the layers, AdamW on the rest, with one learning rate.

    It holds master weights in float32 and working weights in bfloat16, each in one vector, and an
    exponential average of the masters. The average is evaluated and exported.
    """

    def __init__(self, model: nn.Module, decay: float = 0.05) -> None:
        def kind(named: tuple[str, nn.Parameter]) -> int:
            name, p = named
            if p.dim() == 1:
                return 2  # biases and gains do not decay
            return 0 if p.dim() == 2 and ".layers." in name else 1

        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        named.sort(key=kind)
        kinds = [kind(pair) for pair in named]
        weights = [p for _, p in named]
        self.master = torch.cat([p.detach().float().flatten() for p in weights])
        self.work = self.master.bfloat16()
        self.grad = torch.zeros_like(self.work)
        self.wide = torch.zeros_like(self.master)
        self.average = self.master.clone()
        self.steps = 0
        self.spans: dict[int, tuple[slice, torch.Size]] = {}
        parts: tuple[list[nn.Parameter], ...] = ([], [], [])
        at = 0
        for p, group in zip(weights, kinds, strict=True):
            span = slice(at, at + p.numel())
            p.data = self.work[span].view_as(p)
            p.grad = self.grad[span].view_as(p)
            self.spans[id(p)] = (span, p.shape)
            master = nn.Parameter(self.master[span].view_as(p))
            master.grad = self.wide[span].view_as(p)
            parts[group].append(master)
            at = span.stop
        hidden, matrices, vectors = parts
        self.inner = (
            torch.optim.Muon(hidden, weight_decay=decay, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(
                [{"params": matrices, "weight_decay": decay}, {"params": vectors}],
                betas=(0.9, 0.98),
                weight_decay=0.0,
                fused=True,
            ),
        )

    def step(self, rate: float, clip: float = 1.0) -> float:
        """Apply and clear the gradients, and return their norm."""
        self.steps += 1
        self.wide.copy_(self.grad)
        self.grad.zero_()
        norm = float(self.wide.norm())
        if not math.isfinite(norm):
            return norm
        if norm > clip:
            self.wide.mul_(clip / norm)
        for optimiser in self.inner:
            for group in optimiser.param_groups:
                group["lr"] = rate
            optimiser.step()
        if self.steps % AVERAGE_EVERY == 0:
            self.average.lerp_(self.master, 1 - min(0.97, self.steps / (self.steps + 50)))
        self.work.copy_(self.master)
        return norm

    def state(self) -> dict[str, object]:
        """Return the state for `restore`."""
        return {
            "master": self.master,
            "average": self.average,
            "steps": self.steps,
            "inner": [optimiser.state_dict() for optimiser in self.inner],
        }

    def restore(self, state: dict) -> None:
        """Continue from a state that `state` has returned."""
        self.master.copy_(state["master"])
        self.average.copy_(state["average"])
        self.steps = state["steps"]
        for optimiser, saved in zip(self.inner, state["inner"], strict=True):
            optimiser.load_state_dict(saved)
        self.work.copy_(self.master)

    def averaged(self) -> dict[int, Tensor]:
        """Return the averaged weights in float32, by `id` of the parameter."""
        return {key: self.average[span].view(shape) for key, (span, shape) in self.spans.items()}


def spell(text: str) -> list[int]:
    """Return the labels of a transcript for the CTC head."""
    return [LETTERS.index(c) + 1 for c in text.lower() if c in LETTERS]
