"""Pages in a real browser: every figure is drawn, and the console stays empty. Skipped without Chromium."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from contrasweep.tuning.reports.page import Section, Table, render_page
from contrasweep.tuning.reports.report import report
from contrasweep.tuning.sensitivity import forest
from contrasweep.tuning.sensitivity.analyse import analyse_observations
from tests.reports.test_maps import drawn_map, page_with
from tests.sensitivity.analysed_studies import page_of, study
from tests.sensitivity.learning_curves import searched
from tests.studies import scored

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
DEADLINE = 300
PHONE = 360

# In a page: once it is drawn, tells how wide it is, and which words of a figure are cut or lie over others.
MEASURE = """<script>(() => {
  const shown = (node) => node.textContent && !node.closest(".hoverlayer")
    && getComputedStyle(node).visibility !== "hidden" && getComputedStyle(node).opacity !== "0";
  // The box of a slanted word is larger than the word.
  const level = (node) => !/rotate\\((?!0[,)])/.test(node.getAttribute("transform") || "");
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  const timer = setInterval(() => {
    const root = document.documentElement;
    if (!root.dataset.drawn) return;
    clearInterval(timer);
    const found = [...document.querySelectorAll(".plot")].flatMap((plot) => {
      const frame = plot.getBoundingClientRect();
      const words = [...plot.querySelectorAll("svg text")].filter(shown)
        .map((node) => ({ text: node.textContent, level: level(node), box: node.getBoundingClientRect() }));
      const cut = words.filter(({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
      const pairs = words.flatMap((a, i) => words.slice(i + 1)
        .filter((b) => a.level && b.level && over(a.box, b.box)).map((b) => `${a.text} over ${b.text}`));
      return [...cut.map(({ text }) => `${text} is cut`), ...pairs].map((what) => `${plot.id}: ${what}`);
    });
    parent.postMessage(JSON.stringify({ inner: innerWidth, width: root.scrollWidth, found }), "*");
  }, 50);
})();</script></body>"""
# Around it: Chromium has no window as narrow as a phone, but frames.
FRAME = """<!doctype html><html><body>
<iframe src="page.html" style="width: {width}px; height: 900px; border: 0">
</iframe><script>addEventListener("message", (told) => {{
  document.documentElement.dataset.measured = told.data;
}});</script></body></html>"""


@dataclass(frozen=True)
class Seen:
    """The state of a page after a browser loaded it."""

    dom: str
    console: list[str]

    @property
    def drawn(self) -> int:
        found = re.search(r'data-drawn="(\d+)"', self.dom)
        return int(found[1]) if found else 0

    @property
    def measured(self) -> dict[str, Any]:
        """The measurements of `MEASURE`."""
        found = re.search(r'data-measured="([^"]*)"', self.dom)
        assert found is not None
        content: dict[str, Any] = json.loads(html.unescape(found[1]))
        return content

    @property
    def plots(self) -> int:
        """The number of figures that hold drawn marks."""
        return len(
            re.findall(r'<div class="plot[^>]*id="figure-.*?<svg class="main-svg"', self.dom, re.DOTALL)
        )


Browse = Callable[..., Seen]


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    def open_page(content: str, *options: str, width: int | None = None) -> Seen:
        page = tmp_path / "page.html"
        page.write_text(content if width is None else content.replace("</body>", MEASURE))
        if width is not None:
            page = tmp_path / "frame.html"
            page.write_text(FRAME.format(width=width))
        # In virtual time, the browser is done once the page has nothing left to do.
        command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command.append("--enable-logging=stderr")
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
        [scored([0.5, 0.6 + n / 100], colour=100.0 - n) for n in range(6)]
        + [scored([0.5, float("nan")], "failed", error="</script> loss nan")]
        + [scored([0.5, 0.55], "stopped")]
    )
    write_final([(0.9, 0.8), (0.92, 0.82), (0.94, 0.84)])
    write_study([scored()], "other", method="infonce")
    page = report(store, ["demo", "other"])
    seen = browse(page)
    assert seen.console == []
    assert seen.drawn == seen.plots == page.count("data-figure=") == 10


def test_a_report_fits_a_phone(write_study, store, browse: Browse) -> None:
    rbf = {"kernel": "rbf", "sigma2": 100.0, "optimizer.lr": 0.3}
    write_study(
        [scored([0.5, 0.6 + n / 100], colour=100.0 - n) for n in range(6)]
        + [scored([0.5, 0.6 + n / 100], "stopped", values=rbf) for n in range(6)]
    )
    seen = browse(report(store, ["demo"]), width=PHONE)
    assert seen.console == []
    assert seen.measured == {"inner": PHONE, "width": PHONE, "found": []}


def test_a_map_is_drawn_and_shows_the_image_at_the_pointer(browse: Browse) -> None:
    point = """<script>setTimeout(() => {
        const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect();
        const corner = { clientX: box.right, clientY: box.bottom - 60 };
        canvas.dispatchEvent(new PointerEvent("pointermove", corner));
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        document.documentElement.dataset.inked = data.some((value) => value > 0);
        document.documentElement.dataset.drawn = "1"; }, 500);</script></body>"""
    seen = browse(page_with(drawn_map()).replace("</body>", point), width=PHONE)
    assert seen.console == []
    assert seen.measured == {"inner": PHONE, "width": PHONE, "found": []}
    alone = browse(page_with(drawn_map()).replace("</body>", point))
    assert 'data-inked="true"' in alone.dom
    assert "&lt;/script&gt; · class not known · bias 0" in alone.dom


def test_a_sensitivity_page_fits_a_phone(browse: Browse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "TREES", 25)  # a page is as wide with what a forest of any size says
    # Five datasets of three methods: the least for mean ranks.
    names = [(method, data) for data in "abcde" for method in ("infonce", "fair-infonce", "fair-cclk")]
    small = [
        replace(study(6, f"{m}-on-data-{d}", seed, f"data-{d}"), method=m)
        for seed, (m, d) in enumerate(names)
    ]
    compared = browse(page_of(analyse_observations(small)), width=PHONE)
    alone = browse(page_of(analyse_observations([study()])), width=PHONE)
    rungs = browse(page_of(analyse_observations([searched("steady", 60, 0)])), width=PHONE)
    assert alone.console == compared.console == rungs.console == []
    fits = {"inner": PHONE, "width": PHONE, "found": []}
    assert (alone.measured, compared.measured, rungs.measured) == (fits, fits, fits)


def test_what_does_not_fit_is_noticed(browse: Browse) -> None:
    ticks = {"tickvals": [1, 1.01], "ticktext": ["long words", "longer words"], "tickangle": 0}
    figure = go.Figure(go.Scatter(x=[0, 2], y=[0, 1]), {"xaxis": ticks, "title": {"text": "w" * 90}})
    page = render_page("t", "s", [Section("one", "", [figure])], [])
    seen = browse(page.replace("</main>", '<div style="width: 500px">x</div></main>'), width=PHONE)
    assert seen.measured["width"] > PHONE
    assert seen.measured["found"] == [
        f"figure-1-1: {'w' * 90} is cut",
        "figure-1-1: long words over longer words",
    ]


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


def test_a_filter_shows_the_rows_with_the_chosen_value(browse: Browse) -> None:
    rows = [["one", 1], ["two", 2], ["two", 3], ["", 4]]
    table = Table("t", ["name", "n"], rows, filters=("name",))
    page = render_page("t", "s", [Section("one", "", (), [table])], [])
    for place, shown in ((2, 2), (3, 1)):
        choose = f"""<script>const choice = document.querySelector("select");
            choice.selectedIndex = {place};
            choice.dispatchEvent(new Event("change", {{ bubbles: true }}));</script></body>"""
        seen = browse(page.replace("</body>", choose))
        assert seen.console == []
        assert seen.dom.count('<tr hidden=""') == 4 - shown
        assert f">{shown} of 4</output>" in seen.dom
