"""Pages in a real browser: every figure is drawn, and the console stays empty. Skipped without Chromium."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from written_studies import Written

from tuning.reports.page import Section, Table, render_page
from tuning.reports.report import report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
DEADLINE = 300
DESKTOP, PHONE = 1100, 360

# Measures the page once it is drawn: how wide it is, and which words of a figure are cut or over others.
MEASURE = """<script>(() => {
  const words = (plot) => [...plot.querySelectorAll("svg text")]
    .filter((node) => node.textContent && !node.closest(".hoverlayer"))
    .map((node) => ({ text: node.textContent, box: node.getBoundingClientRect(), plot: plot.id }));
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  const timer = setInterval(() => {
    const root = document.documentElement;
    if (!root.dataset.drawn) return;
    clearInterval(timer);
    const found = [...document.querySelectorAll(".plot")].flatMap((plot) => {
      const all = words(plot), frame = plot.getBoundingClientRect();
      const cut = all.filter(({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        .map(({ text }) => `${plot.id}: ${text} is cut`);
      const pairs = all.flatMap((a, i) => all.slice(i + 1).filter((b) => over(a.box, b.box))
        .map((b) => `${plot.id}: ${a.text} and ${b.text}`));
      return [...cut, ...pairs];
    });
    root.dataset.measured = JSON.stringify({ inner: innerWidth, width: root.scrollWidth, found });
  }, 50);
})();</script></body>"""


@dataclass(frozen=True)
class Seen:
    """What the browser made of a page."""

    dom: str
    console: list[str]

    @property
    def drawn(self) -> int:
        found = re.search(r'data-drawn="(\d+)"', self.dom)
        return int(found[1]) if found else 0

    @property
    def measured(self) -> dict[str, Any]:
        """What `MEASURE` found."""
        found = re.search(r'data-measured="([^"]*)"', self.dom)
        assert found is not None
        content: dict[str, Any] = json.loads(html.unescape(found[1]))
        return content

    @property
    def plots(self) -> int:
        """Figures that hold drawn marks."""
        return len(
            re.findall(r'<div class="plot[^>]*id="figure-.*?<svg class="main-svg"', self.dom, re.DOTALL)
        )


Browse = Callable[..., Seen]


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    def open_page(content: str, *options: str) -> Seen:
        page = tmp_path / "page.html"
        page.write_text(content)
        # In virtual time, the browser is done once the page has nothing left to do.
        command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=30000", *options]
        if not any(option.startswith("--print") for option in options):
            command.append("--dump-dom")
        done = subprocess.run(
            [*command, page.as_uri()], capture_output=True, text=True, timeout=DEADLINE, check=True
        )
        return Seen(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])

    return open_page


def test_a_whole_report_is_drawn(write_study, write_final, store, browse: Browse) -> None:
    write_study(
        [Written([0.5, 0.6 + n / 100], colour=100.0 - n) for n in range(6)]
        + [Written([0.5, float("nan")], "failed", error="</script> loss nan")]
        + [Written([0.5, 0.55], "stopped")]
    )
    write_final([(0.9, 0.8), (0.92, 0.82), (0.94, 0.84)])
    write_study([Written()], "other", method="infonce")
    page = report(store, ["demo", "other"])
    seen = browse(page)
    assert seen.console == []
    assert seen.drawn == seen.plots == page.count("data-figure=") == 10


def test_traces_that_other_pages_use_are_drawn_under_the_security_policy(browse: Browse) -> None:
    grid = [[1.0, 2.0], [3.0, 4.0]]
    figures = [
        go.Figure(go.Heatmap(z=grid)),
        go.Figure(go.Contour(z=grid)),
        go.Figure(go.Box(y=[1, 2, 3])),
        go.Figure(go.Bar(x=["a"], y=[1], error_y={"array": [0.1]})),
    ]
    seen = browse(render_page("t", "s", [Section("one", "", figures)], []))
    assert seen.console == []
    assert seen.drawn == seen.plots == len(figures)


def test_what_breaks_a_page_is_noticed(browse: Browse) -> None:
    page = render_page("t", "s", [Section("one", "", [go.Figure(go.Bar(x=[1], y=[1]))])], [])
    broken = browse(page.replace("Plotly.react(", "Plotly.nothing("))
    assert broken.console
    assert broken.drawn == broken.plots == 0
    outside = browse(page.replace("</body>", '<img src="https://example.org/x.png"></body>'))
    assert "Content Security Policy" in outside.console[0]


def test_paper_gets_figures_and_folded_tables(browse: Browse, tmp_path: Path) -> None:
    long = Table("many", ["n"], [(n,) for n in range(200)])
    figures = [go.Figure(go.Scatter(x=[1, 2], y=[1, 2]), {"title": {"text": "a line"}})]

    def pages(*sections: Section) -> int:
        printed = tmp_path / "page.pdf"
        seen = browse(render_page("t", "s", sections, []), f"--print-to-pdf={printed}")
        assert seen.console == []
        return len(re.findall(rb"/Type\s*/Page\b(?!s)", printed.read_bytes()))

    assert pages(Section("one", "", figures)) == 1
    # 200 rows do not fit on the page; folded, as they are on the screen, they would.
    assert pages(Section("one", "", figures, [long])) > 2
