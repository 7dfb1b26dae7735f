"""Maps on a page: what the script is given, and nothing of it where there is no map."""

import json
import re

from contrasweep.tuning.reports.maps import Colouring, FeatureMap, Panel, PictureSheet, distinct_colours
from contrasweep.tuning.reports.page import Section, render_page

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f00050001ff56c72f0d0000000049454e44ae426082"
)


def drawn_map() -> FeatureMap:
    """Return a map of three images: a class that does not occur, an unknown one, and a name to escape."""
    return FeatureMap(
        "Map of 3 images",
        ["one", "</script>", "three"],
        [Panel("Trained", [(0.0, 0.0), (1.0, 0.25), (0.5, 1.0)]), Panel("Before training", [(0.5, 0.5)] * 3)],
        [Colouring("class", [2, None, 0], ["a", "b", "c"]), Colouring("bias", [0, 0, 1], ["0", "1"])],
        PictureSheet(PIXEL, "png", 2, 1),
    )


def page_with(*maps: FeatureMap) -> str:
    return render_page("t", "s", [Section("one", "", maps=maps)], [])


def test_the_script_gets_places_on_the_screen_and_the_values_that_occur() -> None:
    page = page_with(drawn_map())
    content = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page)[1])  # type: ignore[index]
    assert content["panels"][0] == [0, 1000, 1000, 750, 500, 0], "downwards"
    by_class, by_bias = content["colourings"]
    assert by_class["names"] == ["a", "c", "not known"]
    assert by_class["values"] == [1, 2, 0]
    assert by_class["colours"] == [*distinct_colours(2), "#8C8C8C"]
    assert by_bias["names"] == ["0", "1"]
    assert content["names"][1] == "</script>"
    assert '<option value="1">bias</option>' in page
    assert page.count("<canvas") == 2


def test_a_page_without_maps_has_no_script_for_them() -> None:
    assert "map" not in page_with()
    assert "plotly" not in page_with(drawn_map()).lower(), "a map needs no library"


def test_many_values_have_as_many_colours() -> None:
    assert len(set(distinct_colours(200))) == 200
