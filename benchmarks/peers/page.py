"""Fill the tables of the pages on replayed searches, and draw their figure.

    python -m benchmarks.peers.page

The results are those that `benchmarks.peers --keep docs/peers.parquet` kept.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from benchmarks.filled import filled
from benchmarks.peers.records import OURS, Record, Setting, read, settings_in
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.tables.verdict_text import pipes

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = tuple(DOCS / f"{name}.md" for name in ("peers", "warm-start-measurements", "recordings"))
RECORDS: Final = DOCS / "peers.parquet"
FIGURE: Final = DOCS / "images" / "peers.png"
CHANCE: Final = ("random, ASHA", "random")
DRAWN_FROM: Final = 0.2
"""Before this share of the budget, few searches have a trial that has ended."""
IN_A_ROW: Final = 2
"""Recordings in a row of the figure."""


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    records = read(RECORDS)
    found = tables(records)
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    draw(records, FIGURE)


def tables(records: Sequence[Record]) -> dict[str, str]:
    """Return the tables of all pages as Markdown, by name."""
    plain = [one for one in records if not one.setting.earlier]
    return {
        "half": _scores(plain, 0.5),
        "end": _scores(plain, 1.0),
        "ranks": _ranks(plain),
        "epochs": _epochs(plain),
        "earlier": _earlier(records),
        "recordings": _recordings(plain),
    }


def of_setting(records: Sequence[Record], setting: Setting) -> dict[str, Record]:
    """Return the records of one setting, by search."""
    return {one.search: one for one in records if one.setting == setting}


def best_peer(found: Mapping[str, Record]) -> Record:
    """Return the record of the peer with the highest score at the end."""
    peers = [one for name, one in found.items() if name not in (*OURS, *CHANCE)]
    return max(peers, key=lambda one: one.score[-1])


def share_of_best_peer(found: Mapping[str, Record], search: str) -> float | None:
    """Return the epochs after which a search has the best peer's score at the end, by the epochs of the peer.

    None if it never has.
    """
    peer = best_peer(found)
    own, needed = (one.epochs_to_reach(peer.score[-1]) for one in (found[search], peer))
    assert needed is not None, "the peer reaches its own score"
    return None if own is None else own / needed


def _scores(records: Sequence[Record], share: float) -> str:
    names = list(dict.fromkeys(one.search for one in records))
    rows = []
    for setting in settings_in(records):
        found = of_setting(records, setting)
        cells = _compared([found[name] for name in names], share)
        rows.append([setting.recording, str(setting.workers), *cells])
    return pipes(["recording", "at once", *names], rows)


def _ranks(records: Sequence[Record]) -> str:
    names = list(dict.fromkeys(one.search for one in records))
    count = len(settings_in(records))
    rows = []
    for name in names:
        own = [one for one in records if one.search == name]
        half = float(np.sqrt(sum(one.rank_half**2 for one in own))) / len(own)
        rank, trials = mean(one.rank for one in own), mean(one.begun for one in own)
        ended = mean(one.finished for one in own)
        rows.append([name, f"{rank:.2f} ± {half:.2f}", f"{trials:.0f}", f"{ended:.0f}"])
    return pipes(["search", f"mean rank in {count} comparisons", "trials", "trained to the end"], rows)


def _epochs(records: Sequence[Record]) -> str:
    rows = []
    for setting in settings_in(records):
        found = of_setting(records, setting)
        cells = [_reached(found, name) for name in OURS]
        rows.append([setting.recording, str(setting.workers), best_peer(found).search, *cells])
    return pipes(["recording", "at once", "best peer", *OURS], rows)


def _earlier(records: Sequence[Record]) -> str:
    rows = []
    for setting in (one for one in settings_in(records) if one.earlier):
        without = Setting(setting.recording, setting.workers, setting.budget, earlier=False)
        for name, one in of_setting(records, setting).items():
            before = of_setting(records, without)[name]
            cells = [f"{_at(before, share)} → {_at(one, share)}" for share in (0.125, 0.25, 0.5, 1.0)]
            rows.append([setting.recording, name, *cells])
    return pipes(["recording", "search", "12.5 %", "25 %", "50 %", "100 %"], rows)


def _recordings(records: Sequence[Record]) -> str:
    rows = []
    for name in dict.fromkeys(one.setting.recording for one in records):
        known = next(one.surrogate for one in records if one.setting.recording == name)
        shares = (known.error, known.own_error, known.noise, known.reachable)
        cells = [f"{100 * one:.1f}" for one in shares]
        rows.append([f"`{name}`", f"{known.trials} ({known.again})", *cells])
    columns = ["held-out error", "beyond the noise", "noise of a seed", "reachable"]
    return pipes(["recording", "trials (again)", *columns], rows)


def _at(one: Record, share: float) -> str:
    score, _ = one.after(share)
    return "-" if np.isnan(score) else f"{100 * score:.1f}"


def _compared(records: Sequence[Record], share: float) -> list[str]:
    """Return the scores after a share of the budget, the highest one in bold."""
    scores = [one.after(share) for one in records]
    best = max(score for score, _ in scores)
    return [_bold(f"{100 * score:.1f} ± {100 * half:.1f}", score == best) for score, half in scores]


def _reached(found: Mapping[str, Record], search: str) -> str:
    share = share_of_best_peer(found, search)
    return "not reached" if share is None else f"{share:.0%}"


def _bold(text: str, yes: bool) -> str:
    return f"**{text}**" if yes else text


def draw(records: Sequence[Record], path: Path) -> None:
    """Draw the mean score by the share of the budget: two recordings in a row, each by trials at once."""
    plain = [one for one in records if not one.setting.earlier]
    names = list(dict.fromkeys(one.setting.recording for one in plain))
    workers = sorted({one.setting.workers for one in plain})
    rows, columns = -(-len(names) // IN_A_ROW), IN_A_ROW * len(workers)
    figure = Figure(figsize=(3.2 * columns, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for panel, (name, at_once) in zip(panels, product(names, workers), strict=False):
        of_recording = [one for one in plain if one.setting.recording == name]
        _draw_lines(panel, [one for one in of_recording if one.setting.workers == at_once])
        panel.set_ylim(_limits(of_recording))
        panel.set_title(f"{name}, {at_once} at once", fontsize=10)
        panel.xaxis.set_major_formatter(PercentFormatter(1.0))
    for panel in panels[len(names) * len(workers) :]:
        panel.set_axis_off()
    figure.supxlabel("share of the budget", fontsize=10)
    figure.supylabel("score on other seeds, %", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)


def _limits(records: Sequence[Record]) -> tuple[float, float]:
    """Return the ends of the axis of scores, %."""
    late = [score for one in records for score in one.score[int(DRAWN_FROM * len(one.score)) - 1 :]]
    low, high = np.nanmin(late), max(np.nanmax(late), records[0].surrogate.reachable)
    return 100 * float(low) - 0.5, 100 * float(high) + 0.5


def _draw_lines(axes: Any, records: Sequence[Record]) -> None:
    for place, one in enumerate(records):
        share = np.arange(1, len(one.score) + 1) / len(one.score)
        score, half = 100 * np.array(one.score), 100 * np.array(one.score_half)
        ours, chance = one.search in OURS, one.search in CHANCE
        colour = GREY if chance else COLOURS[place]
        style = "--" if one.search == CHANCE[-1] else "-"
        late = share >= DRAWN_FROM
        width = 2.2 if ours else 1.2
        axes.plot(share[late], score[late], style, color=colour, linewidth=width, label=one.search)
        if ours:
            low, high = (score - half)[late], (score + half)[late]
            axes.fill_between(share[late], low, high, color=colour, alpha=0.15, linewidth=0)
    axes.axhline(100 * records[0].surrogate.reachable, color=GREY, linewidth=1, linestyle=":")
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
