"""Trains the starter recogniser from scratch: `python -m models.train.asr STAGE [--work DIR]`.

Stages, in order: `tokenizer`, `data` (may run beside `train`), `train`, `export`, `evaluate`.
Each resumes where it was stopped. The learning rate follows the clock, not a step count: a run
given `--minutes` ends with a finished schedule on any machine.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import WhisperForConditionalGeneration

from models.train import asr_data, asr_export, asr_import, asr_streaming, asr_tokenizer
from models.train.asr_batches import Batches
from models.train.asr_model import Optimiser, Recogniser, config, initialise

STARTER = Path(__file__).parents[1] / "starter" / "asr"
CTC_WEIGHT = 0.5
EASY_STEPS = 800
STRENGTH = 0.5
"""Most perturbation of the features. Little is enough, since examples are hardly used twice."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    work: Path
    out: Path
    seed: int
    shards: int
    minutes: float
    peak: float
    frames: int
    size: int
    start: Path | None
    average: Path | None
    threads: int


def main() -> None:
    """Parse the command line and run one stage."""
    parser = argparse.ArgumentParser(prog="models.train.asr", description=__doc__)
    parser.add_argument("stage", choices=("tokenizer", "data", "train", "export", "evaluate"))
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    parser.add_argument("--work", type=Path, default=cache / "voiceloop" / "train" / "asr")
    parser.add_argument("--out", type=Path, default=STARTER, help="the exported model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", type=int, default=400, help=f"of {asr_data.SHARD} examples")
    parser.add_argument(
        "--minutes", type=float, default=85, help="training time, all runs together"
    )
    parser.add_argument("--peak", type=float, default=1e-3, help="highest learning rate")
    parser.add_argument("--frames", type=int, default=8_000, help="of 10 ms in a batch")
    parser.add_argument("--size", type=int, default=500, help="sentences in the main test sets")
    parser.add_argument(
        "--start", type=Path, help="exported model that a new training goes on from"
    )
    parser.add_argument("--average", type=Path, help="checkpoint to take the mean with at export")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = vars(parser.parse_args())
    stage = arguments.pop("stage")
    options = Options(**arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    stages = {
        "tokenizer": tokenizer,
        "data": data,
        "train": train,
        "export": export,
        "evaluate": evaluate,
    }
    stages[stage](options)


def tokenizer(options: Options) -> None:
    """Train the tokenizer."""
    asr_tokenizer.build(options.seed).save(str(options.work / "tokenizer.json"))


def data(options: Options) -> None:
    """Make the training shards."""
    asr_data.make(options.work / "shards", options.seed, "easy", asr_data.EASY_SHARDS)
    asr_data.make(options.work / "shards", options.seed, "shard", options.shards)
    asr_data.make(options.work / "shards", options.seed, "spliced", asr_data.SPLICED_SHARDS)


def test_sets(options: Options) -> dict[str, list[asr_data.Example]]:
    """Load the test sets by name; they are made once and kept in the work folder."""
    sets = {}
    folder = options.work / f"test-{options.size}"
    folder.mkdir(exist_ok=True)
    for name, make in asr_data.test_sets(options.seed, options.size):
        path = folder / f"{name.replace(' ', '-')}.npz"
        if not path.exists():
            asr_data.save(path, make())
        sets[name] = asr_data.load(path)
    return sets


def learning_rate(progress: float, step: int, peak: float) -> float:
    """Return the learning rate: linear warm-up over 250 steps, cosine to 0 at `progress` 1."""
    return peak * min(1, step / 250) * 0.5 * (1 + math.cos(math.pi * min(1, progress)))


def train(options: Options, log_every: int = 50, save_s: float = 180, test_s: float = 540) -> None:
    """Train until `--minutes` have passed, over all runs together."""
    words = asr_tokenizer.load(options.work)
    torch.manual_seed(options.seed)
    whisper = WhisperForConditionalGeneration(config(words))
    initialise(whisper)
    if options.start:
        whisper.load_state_dict(asr_import.weights(options.start), strict=False)
    # Plain products and softmax are faster on CPUs than the fused kernel's backward pass.
    whisper.config._attn_implementation = "eager"
    model = Recogniser(whisper, words.token_to_id("<|nospeech|>")).bfloat16().train()
    optimiser = Optimiser(model)
    batches = Batches(options.work / "shards", words, options.seed, options.frames)
    checkpoint = options.work / "checkpoint.pt"
    spent, number = 0.0, 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        optimiser.restore(saved["optimiser"])
        spent, number = saved["spent"], saved["round"]
        batches.uses = saved["uses"]
    dev = {name: examples[:40] for name, examples in test_sets(options).items()}

    def save() -> None:
        state = {
            "optimiser": optimiser.state(),
            "spent": spent,
            "round": number + 1,
            "uses": batches.uses,
            "whisper": averaged(model, optimiser),
        }
        temporary = checkpoint.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.rename(checkpoint)

    total = options.minutes * 60
    clock = time.perf_counter()
    saved_at, tested_at = spent, spent
    losses: list[tuple[float, float, float, int]] = []
    while spent < total:
        # A fresh model begins with the easy examples.
        known = math.inf if options.start else optimiser.steps
        strength = min(STRENGTH, max(0, known - EASY_STEPS) / 2000)
        for batch in batches.round(number, strength, size=2048):
            rate = learning_rate(spent / total, optimiser.steps, options.peak)
            attention, ctc = model.loss(batch)
            (attention + CTC_WEIGHT * ctc).backward()
            norm = optimiser.step(rate)
            losses.append((attention.item(), ctc.item(), norm, len(batch.frames)))
            now = time.perf_counter()
            spent, clock = spent + now - clock, now
            if optimiser.steps % log_every == 0:
                log(optimiser.steps, spent, rate, losses, len(batches.examples))
                losses.clear()
            if spent - tested_at > test_s:
                tested_at = spent
                folder = options.work / "latest"
                asr_export.export(averaged(model, optimiser), options.work, folder)
                for name, figures in asr_export.report(folder, dev).items():
                    print(f"  {name}: {shown(figures)}", flush=True)
            if spent - saved_at > save_s:
                saved_at = spent
                save()
            if spent >= total:
                break
        number += 1
    save()
    print("finished", flush=True)


def averaged(model: Recogniser, optimiser: Optimiser) -> dict[str, torch.Tensor]:
    """Return the state of Whisper with averaged weights, in float32."""
    weights = optimiser.averaged()
    return {
        name: weights.get(id(p), p).detach().float().clone()
        for name, p in model.whisper.named_parameters(remove_duplicate=False)
    }


def log(step: int, spent: float, rate: float, losses: list, examples: int) -> None:
    """Print one line of progress."""
    attention, ctc, norm, _ = (sum(column) / len(losses) for column in zip(*losses, strict=True))
    seen = sum(row[3] for row in losses)
    print(
        f"{time.strftime('%H:%M:%S')} step {step} {spent / 60:.1f} min lr {rate:.2e} attention "
        f"{attention:.3f} ctc {ctc:.3f} norm {norm:.1f} utterances {seen} of {examples}",
        flush=True,
    )


def shown(figures: dict[str, float]) -> str:
    """Format figures on one line, with shares in per cent."""
    return ", ".join(
        f"{key} {value}" if key == "clips" else f"{key} {value:.1%}"
        for key, value in figures.items()
    )


def export(options: Options) -> None:
    """Convert the latest checkpoint into the model that ships."""
    weights = torch.load(options.work / "checkpoint.pt", weights_only=True)["whisper"]
    if options.average:
        other = torch.load(options.average, weights_only=True)["whisper"]
        weights = {name: (weight + other[name]) / 2 for name, weight in weights.items()}
    asr_export.export(weights, options.work, options.out)
    for file in sorted(options.out.iterdir()):
        print(f"{file.name}: {file.stat().st_size / 2**20:.2f} MiB")


def evaluate(options: Options) -> None:
    """Measure the exported model on every test set.

    The figures go to `--work`/evaluation.json and into the model card.
    """
    sets = test_sets(options)
    figures = asr_export.report(options.out, sets)
    print(asr_export.table(figures))
    asr_export.write(figures, options.work / "evaluation.json", options.out / "README.md")
    decode = asr_export.Decoder(options.out)
    for name, examples in sets.items():
        for line in asr_export.mistakes(decode, examples, 5):
            print(f"  {name}: {line}")
    for name, value in asr_streaming.streaming(options.out, options.size, options.seed).items():
        print(f"{name}: {value:.4g}")


if __name__ == "__main__":
    main()
