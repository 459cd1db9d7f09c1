"""What a record of `bench llm` says."""

from __future__ import annotations

from voiceloop.bench.record import Record, Values
from voiceloop.bench.report import svg
from voiceloop.bench.report.draw import (
    Cell,
    Picture,
    Report,
    Table,
    counted,
    machine,
    number,
    tabled,
)

LABELS = {
    "plain": "voiceloop, plain",
    "speculative": "voiceloop, speculative",
    "hf_plain": "transformers, plain",
    "hf_assisted": "transformers, best length",
    "hf_assisted_default": "transformers, by default",
}
COLUMNS: dict[str, Cell] = {
    "tokens/s": number("tokens_per_s", "{:.1f}"),
    "first token": number("ttft_ms", "{:.1f} ms"),
    "per round": number("tokens_per_round", "{:.2f}"),
    "acceptance": number("acceptance", "{:.1%}"),
    "same text": number("equal_to_plain", "{:.0%}"),
}
COST: dict[str, Cell] = {"cost of 1,000": number("cost_per_1000_tokens", "{:.3g}")}
RATIOS = {
    "speculative_over_plain": "speculative over plain",
    "speculative_over_hf_plain": "speculative over transformers plain",
    "speculative_over_hf_assisted": "speculative over transformers, best length",
    "plain_over_hf_plain": "plain over transformers plain",
    "measured_over_predicted": "speed-up after the first token, measured over predicted",
}
KINDS = {"plain": "span", "speculative": "p1"}
"""Classes of modes; transformers' have that of what is beside the point."""
PARTS = {"target": "p1", "draft": "p2", "rest": "p4"}
"""Classes of what a token waits for."""
FEW = 5
"""A draft token that was tested less often gets no column."""


def report(record: Record) -> Report:
    """What `record` says."""
    settings, found = record.settings, record.figures
    priced = settings["price_per_hour"] is not None
    modes = {LABELS[name]: own for name, own in found["modes"].items()}
    steps = {
        LABELS[mode]: svg.stacked(parts, PARTS, f"{LABELS[mode]}, ", "{:.2f} ms")
        for mode, parts in found["steps"]["ms_per_token"].items()
    }
    return Report(
        "Speculative decoding, measured",
        _subject(record),
        (
            tabled("", "mode", COLUMNS | COST if priced else COLUMNS, modes),
            Table("Ratios of tokens per second, of pairs", (), _ratios(found)),
        ),
        machine(record.machine),
        _remarks(record),
        (
            Picture(
                "Tokens per second",
                rate_chart(found),
                "The short line is the middle half of replies; dashes: what reading the weights"
                " once a token allows, where that is not far beyond.",
            ),
            Picture(
                "Acceptance by position of the draft token in its round",
                acceptance_chart(found),
                key={
                    LABELS[name]: kind
                    for name, kind in (("speculative", "p1"), ("hf_assisted", "p4"))
                    if name in found["modes"]
                },
            ),
            Picture(
                "Milliseconds of a token after the first",
                svg.bars("Time of one token", steps, "{:.2f} ms"),
                key=PARTS,
            ),
        ),
    )


def _subject(record: Record) -> list[str]:
    settings, own = record.settings, record.machine
    target, draft = (
        f"{settings[name]} ({_size(settings[f'{name}_parameters'])})"
        for name in ("target", "draft")
    )
    asked = settings["synthetic_acceptance"]
    oracle = "" if asked is None else f" that is right with probability {asked:g}"
    law = f"temperature {settings['temperature']:g}" if settings["temperature"] else "greedy"
    place = own["gpu"] or f"{own['processor']}, {counted(own['threads'], 'thread')}"
    return [
        f"{target} with the draft {draft}{oracle}, {own['dtype']}, on {place}.",
        f"{counted(settings['replies'], 'reply', 'replies')} to {settings['prompts']} prompts in"
        f" each mode, {law}, at most {settings['max_new_tokens']} tokens;"
        " medians and quartiles, modes in turn.",
    ]


def _ratios(found: Values) -> tuple[tuple[str, str], ...]:
    return tuple(
        (label, "{:.2f} ({:.2f}-{:.2f})".format(found["ratios"][name], *found["spreads"][name]))
        for name, label in RATIOS.items()
        if found["ratios"][name] is not None
    )


def _remarks(record: Record) -> list[str]:
    settings, found = record.settings, record.figures
    steps, bandwidth, speedup = (
        found[name] for name in ("steps", "bandwidth", "speedup_after_first_token")
    )
    lines: list[str] = []
    if settings["replies"] < settings["replies_planned"]:
        lines.append(
            f"Time was up after {settings['replies']} of {settings['replies_planned']} replies."
        )
    same = found["modes"]["speculative"]["equal_to_plain"]
    verdicts = {
        True: "All modes gave the same text.",
        False: "The modes differ in their text: see 'same text'.",
        None: f"Drawn replies: speculative gave the same as plain in {same:.0%}.",
    }
    lines.append(verdicts[found["greedy_equal"]])
    if speedup["predicted"] is not None:
        lines.append(
            f"After the first token speculation is {speedup['measured']:.2f} times as fast;"
            f" the measured step times and acceptance predict {speedup['predicted']:.2f}."
        )
    one = steps["target_pass_ms"]["1"]
    lines += [
        f"One pass of the target takes {one:.2f} ms, one draft token"
        f" {steps['draft_step_ms']:.2f} ms (c = {steps['draft_step_ms'] / one:.2f}), the rest of"
        f" a round {steps['rest_ms']:.2f} ms (o = {steps['rest_ms'] / one:.2f}).",
        f"Reading the {bandwidth['mb_per_pass']:.3g} MB of weights at {bandwidth['gb_per_s']:.1f}"
        f" GB/s takes {bandwidth['floor_ms']:.2f} ms a token; plain decoding reaches"
        f" {bandwidth['share_reached']:.0%} of that speed"
        + (", so the weights stay in a cache." if bandwidth["share_reached"] > 1 else "."),
        *(_on_gpu(found["gpu"], bandwidth) if found["gpu"] else ()),
    ]
    if settings["hf_draft_length"] is not None:
        best = counted(settings["hf_draft_length"], "draft token", "draft tokens")
        lines.append(
            f"The best constant length of transformers' drafts is {best} a round; by default it"
            " drafts 20, fewer where the draft is unsure."
        )
    return lines


def _on_gpu(own: Values, bandwidth: Values) -> list[str]:
    """What a record made on a GPU says of it."""
    plainly = own["graphs_done_plainly"]
    return [
        f"A round asks the GPU for {own['kernels_per_round']:.0f} kernels by"
        f" {own['launches_per_round']:.0f} launches and waits for it"
        f" {own['waits_per_round']:.1f} times; a draft token takes"
        f" {bandwidth['draft_over_floor']:.2f} times as long as reading the draft's weights.",
        f"{counted(own['graphs'], 'graph')} took {own['capture_s']:.2f} s and"
        f" {own['capture_mb']:.0f} MB to capture"
        + (f", {plainly} of them could not be" if plainly else "")
        + f"; tensors held {own['most_memory_mb']:.0f} MB of the GPU's memory at the most.",
    ]


def _size(parameters: int) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M")):
        if parameters >= size:
            return f"{parameters / size:.3g} {letter}"
    return f"{parameters / 1e3:.0f} k"


# --- pictures ------------------------------------------------------------------------------------


def rate_chart(found: Values) -> str:
    """Tokens per second by mode, with quartiles and the machine's own limit for plain decoding."""
    modes, floor = found["modes"], found["bandwidth"]["floor_tokens_per_s"]
    highest = max(mode["tokens_per_s_quartiles"][1] for mode in modes.values())
    # A limit far beyond all bars would make them unreadable: it is then only told.
    shown = floor < 1.6 * highest
    last = max(highest, floor) if shown else highest
    rows = svg.Rows([LABELS[name] for name in modes], 0.0, last)
    for row, (name, mode) in enumerate(modes.items()):
        rate, y = mode["tokens_per_s"], rows.middle(row)
        rows.bars(row, [svg.Bar(0.0, rate, KINDS.get(name, "p4"), f"{LABELS[name]}: {rate:.1f}")])
        low, high = map(rows.x, mode["tokens_per_s_quartiles"])
        rows.parts.append(svg.line(low, y, high, y, "mark"))
        rows.figure(row, f"{rate:.1f}")
    if shown:
        title = f"reading the weights once a token allows {floor:.0f} tokens/s"
        rows.upright(floor, 0, rows.bottom, "limit", title)
    return rows.drawn("Tokens per second")


def acceptance_chart(found: Values) -> str:
    """How often the draft token at each position stood, given that those before it did."""
    shown = {
        name: [
            (share, tested)
            for share, tested in zip(
                found["modes"][name]["acceptance_by_position"],
                found["modes"][name]["tested_by_position"],
                strict=True,
            )
            if tested >= FEW
        ]
        for name in ("speculative", "hf_assisted")
        if name in found["modes"]
    }
    places = max((len(columns) for columns in shown.values()), default=0)
    step = min(110.0, (svg.WIDTH - svg.SIDE - 30) / max(1, places))
    parts = svg.percent_axis()
    for index, (name, columns) in enumerate(shown.items()):
        for place, (share, tested) in enumerate(columns):
            x = svg.SIDE + step * (place + 0.1 + 0.36 * index)
            title = f"{LABELS[name]}: draft token {place + 1} stood in {share:.1%} of {tested}"
            kind = KINDS.get(name, "p4")
            y = svg.level(share)
            parts.append(svg.box(x, y, 0.34 * step, svg.BASE - y, kind, title))
    parts += [
        svg.text(svg.SIDE + step * (place + 0.46), svg.BASE + 18, str(place + 1), "muted", "middle")
        for place in range(places)
    ]
    return svg.picture("Acceptance by position", svg.BASE + 26, parts)
