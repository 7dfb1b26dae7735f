"""A fixed parameter with alternative values: conditions on these values, and the space of a search."""

import pytest

from contrasweep.search_spaces import Fixed, Space, SpaceError

CONTENT = {
    "temperature": 0.1,
    "source_of": {"fixed": "kmeans", "of": ["kmeans", "attributes", "labels"], "source": "Section 3"},
    "clusters": {"log_int": [5, 100], "default": 50, "when": {"source_of": ["kmeans"]}},
    "top_k": {"int": [1, 9], "default": 3, "when": {"source_of": ["attributes"]}},
    "weights": {"choice": ["even", "rare"], "default": "even", "when": {"source_of": ["attributes"]}},
    "power": {"uniform": [0.0, 1.0], "default": 0.5, "when": {"weights": ["rare"]}},
}


def space() -> Space:
    return Space.parse(CONTENT, "clusters.yaml")


def test_conditions_may_name_any_of_its_values() -> None:
    assert space().defaults() == {"temperature": 0.1, "source_of": "kmeans", "clusters": 50}
    assert space().active({"source_of": "attributes"}) == ("temperature", "source_of", "top_k", "weights")
    with pytest.raises(SpaceError, match=r"top_k: when: given source_of = 'atributes'.*'attributes'\?"):
        Space.parse({**CONTENT, "top_k": {"fixed": 3, "when": {"source_of": ["atributes"]}}})


def test_pinning_another_of_its_values_brings_that_one_s_parameters() -> None:
    # Pinning another parameter first removes none of them.
    pinned = space().pin("temperature", 0.2).pin("source_of", "attributes")
    assert pinned.names == ("temperature", "source_of", "top_k", "weights", "power")


def test_a_search_keeps_what_can_still_act() -> None:
    assert space().settled().names == ("temperature", "source_of", "clusters")
    assert space().settled().settled() == space().settled()
    assert space().pin("source_of", "labels").settled().names == ("temperature", "source_of")


def test_what_is_left_out_may_still_be_given() -> None:
    pairs = {"fixed": "all", "of": ["all", "one"], "when": {"source_of": ["labels"]}}
    content = {**CONTENT, "pairs": {**pairs, "given": {"source_of": ["kmeans"]}}}
    whole = Space.parse(content)
    assert "pairs" not in whole.defaults()
    assert "pairs" not in whole.settled()
    assert "pairs" not in whole.pin("source_of", "kmeans")
    given = whole.pin("pairs", "one")
    for source, there in (("kmeans", True), ("labels", True), ("attributes", False)):
        assert ("pairs" in given.pin("source_of", source)) == there
    assert given.settled().defaults()["pairs"] == "one"
    assert Space.parse(whole.forms(), whole.origin) == whole
    assert Space.parse(given.forms(), given.origin) == given
    with pytest.raises(SpaceError, match=r"pairs: when: given source_of = 'kmean'.*'kmeans'"):
        Space.parse({**CONTENT, "pairs": {**pairs, "given": {"source_of": ["kmean"]}}})


def test_what_is_not_searched_beside_a_value_may_still_be_set_there() -> None:
    scale = {"log": [1.0, 1e3], "default": 10.0, "when": {"kernel": ["rbf"]}, "given": {"kernel": ["linear"]}}
    kernel = {"choice": ["rbf", "linear", "cosine"], "default": "rbf"}
    whole = Space.parse({"kernel": kernel, "scale": scale})
    assert Space.parse(whole.forms(), whole.origin) == whole
    assert Space.parse(whole.with_levels(3).forms()).parameters == whole.with_levels(3).parameters
    assert "scale" not in whole.complete({"kernel": "linear", "scale": 5.0})
    assert "scale" not in whole.pin("kernel", "linear")
    given = whole.pin("scale", 500.0)
    for name, there in (("rbf", True), ("linear", True), ("cosine", False)):
        assert ("scale" in given.pin("kernel", name)) == there


def test_it_is_described_and_written_as_it_is_read() -> None:
    parameter = space()["source_of"]
    assert isinstance(parameter, Fixed)
    assert parameter.describe() == "fixed at 'kmeans' of ['kmeans', 'attributes', 'labels']"
    again = Space.parse(space().forms(), "clusters.yaml")
    assert again == space()
    assert again.difference(space()) == []
    assert space().settled().difference(space())


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"fixed": "kmean", "of": ["kmeans", "labels"]}, r"given 'kmean'.*Did you mean 'kmeans'"),
        ({"fixed": 1, "of": [True, False]}, r"given 1; allowed: one of \[True, False\]"),
        ({"fixed": "a", "of": "ab"}, r"of: given 'ab'; allowed: a list of values"),
        ({"fixed": "a", "of": ["a", "a"]}, r"allowed: values of one type, each once"),
        ({"fixed": "a", "of": ["a", 2]}, r"allowed: values of one type, each once"),
        (
            {"choice": ["a", "b"], "default": "a", "of": ["a"]},
            r"of: given beside choice; allowed: beside fixed",
        ),
        (
            {"choice": ["a", "b"], "default": "a", "given": {"b": [1]}},
            r"given: b: no condition names it; allowed: \[\]",
        ),
        ({"fixed": "a", "given": {"b": [1]}}, r"given: b: no condition names it; allowed: \[\]"),
        ({"fixed": "a", "given": "b"}, r"given: given 'b'; allowed: a mapping of parent to its values"),
    ],
)
def test_a_wrong_list_is_refused(form: object, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.parse({"a": form})
