import json
import re

import plotly.graph_objects as go
import pytest

from contrasweep.tuning.reports.page import (
    OPEN_ROWS,
    OPEN_SECTIONS,
    Section,
    Table,
    Toned,
    cell_text,
    render_page,
)
from tests.reports.test_maps import drawn_map


def page(*sections: Section, **options: float) -> str:
    return render_page("A study", "its state", sections, ["n = 3"], **options)


def figure(name: str = "line") -> go.Figure:
    return go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name=name), {"title": {"text": "accuracy"}})


def own_markup(html: str) -> str:
    """Return the page without plotly.js, whose source contains words that the tests look for."""
    return re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = page(Section("one", "text", [figure()]))
    assert "default-src 'none'" in html
    assert not re.search(r"(src|href)=[\"']?(?!#)", own_markup(html))
    assert "<link" not in own_markup(html)


def test_what_stands_in_backticks_is_code_and_all_else_is_escaped() -> None:
    html = own_markup(page(Section("one", "`contrasweep show <b>` says why.\n\n- a `b` c\n- d")))
    assert "<code>contrasweep show &lt;b&gt;</code> says why." in html
    assert "<li>a <code>b</code> c</li>" in html


def test_plotly_is_there_once_and_only_where_a_figure_is() -> None:
    mark = "plotly.js v"
    assert page(Section("one", "", [figure(), figure()]), Section("two", "", [figure()])).count(mark) == 1
    without = page(Section("one", "text"))
    assert mark not in without
    assert len(without) < 20_000


def test_what_others_wrote_is_text_and_not_markup() -> None:
    hostile = "</script><script>alert(1)</script><b>"
    table = Table(hostile, [hostile], [[hostile]], hostile)
    html = page(Section(hostile, hostile, [figure(hostile)], [table]))
    assert "<script>alert" not in html
    assert "<b>" not in own_markup(html)


def test_a_figure_is_named_to_those_who_cannot_see_it() -> None:
    drawn = figure()
    assert 'aria-label="accuracy"' in page(Section("one", "", [drawn]))
    drawn.update_layout(meta={"alt": "rises from 3 to 4"})
    assert 'aria-label="rises from 3 to 4"' in page(Section("one", "", [drawn]))


def test_the_template_is_in_the_page_and_not_in_its_figures() -> None:
    html = page(Section("one", "", [figure()]))
    (spec,) = re.findall(r'data-figure="figure-1-1">(.*?)</script>', html)
    assert "template" not in json.loads(spec)["layout"]
    assert html.count('id="template-dark"') == 1


def test_indented_lines_are_a_command() -> None:
    html = page(Section("one", "Run this:\n\n    contrasweep sweep 'x'\n    contrasweep run x\n\nThen read."))
    assert "<code>contrasweep sweep &#39;x&#39;\ncontrasweep run x</code>" in html
    assert "<p>Then read.</p>" in html


def test_only_a_page_that_changes_is_loaded_again() -> None:
    assert 'http-equiv="refresh" content="5"' in page(Section("one", ""), refresh=4.2)
    assert "refresh" not in own_markup(page(Section("one", "")))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.123456, "0.1235"),
        (3000.0, "3000"),
        (100000.0, "100,000"),
        (1e-7, "1e-07"),
        (float("nan"), "NaN"),
        (float("-inf"), "-∞"),
        (12345, "12345"),
        (True, "True"),
        ("rbf", "rbf"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_numbers_stand_right_and_long_tables_are_folded() -> None:
    table = Table("t", ["name", "score"], [("a", 0.5), ("b", None)], "a note")
    html = page(Section("one", "", tables=[table]))
    assert html.count('class="number"') == 3
    assert "<details>" not in html
    assert 'class="number"' not in page(
        Section("one", "", tables=[Table("t", ["flip"], [(True,), (False,)])])
    )
    long = Table("t", ["n"], [(i,) for i in range(OPEN_ROWS + 1)])
    assert f"t ({OPEN_ROWS + 1} rows)</summary>" in page(Section("one", "", tables=[long]))


def test_a_row_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        page(Section("one", "", tables=[Table("t", ["a", "b"], [(1,)])]))


def test_a_long_list_of_sections_is_folded() -> None:
    sections = [Section(str(number), "") for number in range(OPEN_SECTIONS + 1)]
    assert f"<summary>{len(sections)} sections</summary>" in page(*sections)
    assert "<summary>" not in page(*sections[1:])


def test_a_table_with_filters_is_open_and_has_a_choice_of_each_value() -> None:
    rows = [[name, n] for n, name in enumerate("abc" * OPEN_ROWS)]
    html = page(Section("one", "", (), [Table("many", ["name", "n"], rows, filters=("name",))]))
    assert "<details>" not in html
    assert html.count("<option>") == 3
    blank = page(Section("one", "", (), [Table("many", ["name"], [["a"], [""]], filters=("name",))]))
    assert '<option value="">(blank)</option>' in blank
    assert f"<output>{len(rows)} of {len(rows)}</output>" in html
    assert html.count("row.hidden") == 1
    assert "row.hidden" not in page(Section("one", "", (), [Table("many", ["name", "n"], rows)]))


def test_a_toned_cell_says_its_word_and_its_reason() -> None:
    html = page(Section("one", "", (), [Table("t", ["v"], [[Toned("holds", "blue", True, "n = 5")]])]))
    assert '<td class="toned blue hatched" title="n = 5">holds</td>' in html


def test_lines_that_begin_with_a_dash_are_a_list() -> None:
    html = page(Section("one", "before\n\n- first\n- second"))
    assert "<li>first</li>" in html
    assert "- first" not in html


def test_a_table_without_a_title_is_called_by_its_section() -> None:
    html = page(Section("Ranks", "", tables=[Table("", ["n"], [(n,) for n in range(20)])]))
    assert "<summary>Ranks (20 rows)</summary>" in html
    assert 'aria-label="Ranks"' in html
    assert "<caption>" not in html


def test_without_javascript_a_page_has_no_empty_figures_and_no_dead_controls() -> None:
    table = Table("many", ["name"], [["a"]], filters=("name",))
    html = page(Section("one", "", [figure()], [table], [drawn_map()]))
    (hidden,) = re.findall(r"<noscript><style>(.*?) { display: none; }</style></noscript>", html)
    names = {name.strip().removeprefix(".") for name in hidden.split(",")}
    assert names == {"plot", "filters", "map-choices", "map-shown", "map-panels"}
    assert all(f'class="{name}"' in html for name in names)
    assert html.count("needs JavaScript") == 2
