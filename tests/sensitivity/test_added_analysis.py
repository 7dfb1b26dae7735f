"""An analysis that is added from outside, as one part, appears on the page and in the tables."""

from collections.abc import Iterator

import plotly.graph_objects as go
import pytest

from contrasweep.tuning.sensitivity.analyse import Sensitivity, StudySensitivity, analyse_observations
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.sections import PARTS
from contrasweep.tuning.sensitivity.sections.part import Part, Record, TidyTable
from contrasweep.tuning.sensitivity.tables import sensitivity_tables
from tests.sensitivity.analysed_studies import page_of, study


def spread_of_scores(one: StudySensitivity) -> float | TooFew:
    """The distance between the best and the worst completed trial."""
    scores = one.observations.score
    return float(scores.max() - scores.min()) if len(scores) > 15 else TooFew(len(scores), 16, "trials")


def tell(spread: float, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    figure = go.Figure(go.Bar(x=[spread], y=[one.observations.metric]))
    return f"Scores differ by up to {spread:.3f}.", [figure.update_layout(title="Distance drawn")]


def rows(spread: float, one: StudySensitivity) -> Iterator[Record]:
    yield {"distance": spread}


SPREAD = Part[float](
    title="Distance of scores",
    result=spread_of_scores,
    tell=tell,
    name="distance",
    tables=(TidyTable("distance", "Distance in a table", rows),),
)


@pytest.fixture(scope="module")
def found() -> Sensitivity:
    # With fewer than twenty trials no forest is fitted, so the analysis takes no time.
    return analyse_observations([study(19, "large"), study(12, "small")])


def test_it_is_on_the_page_and_among_the_tables(found: Sensitivity) -> None:
    parts = (*PARTS, SPREAD)
    page = page_of(found, parts)
    for text in (
        "large: distance of scores",
        "Scores differ by up to",
        "Distance drawn",
        "Distance in a table",
    ):
        assert text in page
    assert "Distance of scores: too few to tell: 12 trials, 16 needed." in page
    assert "2 needed. Seeds are repeated with --seeds, or by final runs." in page
    tables = sensitivity_tables(found, parts)
    assert tables["distance"].columns == ("study", "distance")
    assert [row[0] for row in tables["distance"].rows] == ["large"]
    assert ("small", "distance", 12, 16, "trials") in tables["too_few"].rows


def test_analyses_that_lack_the_same_are_listed_once(found: Sensitivity) -> None:
    listed = [row[1] for row in sensitivity_tables(found)["too_few"].rows if row[0] == "small"]
    # Curves, gains and robust ranges all lack the surrogate.
    assert listed == [
        "importance",
        "marginal curves, tunability, robust region",
        "seed noise",
    ]
