"""What a record of `bench llm --drafts all` says."""

from __future__ import annotations

from pathlib import Path

from voiceloop.bench.figures import CHAIN
from voiceloop.bench.record import Record, Values
from voiceloop.bench.report.draw import Cell, Report, machine, number, tabled


def _positions(own: Values) -> str:
    """How often the first draft token stood, the second if the first did, and so on."""
    return " ".join(f"{share:.0%}" for share in own["acceptance_by_position"][:4]) or "-"


def _ratio(own: Values) -> str:
    low, high = own["interval"]
    return f"{own['over_plain']:.2f} ({low:.2f}-{high:.2f})"


COLUMNS: dict[str, Cell] = {
    "tokens/s": number("tokens_per_s", "{:.1f}"),
    "over plain": _ratio,
    "predicted": number("predicted", "{:.2f}"),
    "per round": number("tokens_per_round", "{:.2f}"),
    "stood, by position": _positions,
    "a draft token": number("draft_step_ms", "{:.1f} ms"),
    "same text": number("same_text", "{:.0%}"),
}
COST: dict[str, Cell] = {"cost of 1,000": number("cost_per_1000_tokens", "{:.3g}")}


def report(record: Record) -> Report:
    """What `record` says."""
    settings, found = record.settings, record.figures
    priced = settings["price_per_hour"] is not None
    rows = {_named(name): own for name, own in found["drafts"].items()}
    law = f"temperature {settings['temperature']:g}" if settings["temperature"] else "greedy"
    best, chained, _ = found["best"].partition(CHAIN)
    note = ", for nothing that drafts pays here" if best == "none" else ""
    note += ", with llm.draft_tree = off" if chained else ""
    alone = list(rows) == ["none"]
    subject = "plain only, without a draft" if alone else "with every draft that fits it"
    told = f"{settings['replies']} replies to {settings['prompts']} prompts"
    most = f"at most {settings['max_new_tokens']} tokens"
    return Report(
        "Plain decoding, measured" if alone else "Drafts, measured",
        [
            f"{settings['target']} {subject}: {told}{'' if alone else ' with each'}, {law},"
            f" {most}{'' if alone else '; in turn'}.",
            "A draft may make it faster: --drafts all tries those that are here."
            if alone
            else f"The best here: llm.draft = {best}{note}.",
        ],
        [tabled("", "draft", COLUMNS | COST if priced else COLUMNS, rows)],
        machine(record.machine),
        [
            "Over plain: the median of pairs, and where it lies in 19 of 20 draws of them.",
            "Predicted: what the models' own time says, without anything else a round takes.",
            *(f"{_named(name)} does not fit: {why}" for name, why in found["refused"].items()),
        ],
    )


def _named(name: str) -> str:
    """A draft's name, or that of its folder."""
    return Path(name).name if "/" in name else name
