"""Render docs/which-method.md: which methods run on which data, from what methods and datasets declare.

    python -m docs.which_method_page [FILE]

reads `tuning/catalogue/declared.json`; `make catalogue` writes both. No name on the page was typed by hand.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_METHODS
from contrasweep.tuning.methods.declaration import Declaration
from contrasweep.tuning.planning.needs import NEED_IN_WORDS
from contrasweep.tuning.tables.verdict_text import pipes

_PAGE = Path(__file__).parent / "which-method.md"
_HEAD = """# Which method for which data

This page shows which methods run on your data. A method runs on a dataset if the dataset has everything
that the method needs. Otherwise the sweep is refused before it starts, and the message lists suitable
datasets. This page does not show which method is best: for scores, see [does it learn
anything?](method-measurements.md#does-it-learn-anything)

Your own images ([`image-folder`, `hub-parquet`, `hf`](image-formats.md)) count as images with class labels;
with [`condition=` or `bias=`](image-conditions.md) they also have a conditioning variable or a bias label.
`contrasweep methods --data DATASET` lists the methods that run on a dataset, also on your own images.
[Terms](terms.md#data) explains conditioning variables, bias labels and views; [notes on methods](methods.md)
says how we implement some of them.
"""
_BY_NEEDS = """## By what your data has

A method also runs on data that has more than it needs, so look at all rows whose needs your data meets.
"""
_BY_METHOD = """## By method

The column "additional needs" lists values of hyperparameters that need more than the method itself.
`contrasweep spaces METHOD` prints the search space.
"""


def which_method_page() -> str:
    """Return the page as Markdown."""
    methods = sorted(DECLARED_METHODS.values(), key=lambda one: one.name)
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for method in methods:
        groups[_needs(method)].append(method.name)
    ordered = sorted(groups, key=lambda needs: (len(needs), sorted(needs)))
    by_needs = [[_words(needs), _code(groups[needs]), _code(_datasets(needs))] for needs in ordered]
    by_method = [
        [f"`{one.name}`", one.summary, _words(_needs(one)), _more(one), one.paper] for one in methods
    ]
    tables = (
        pipes(["the data has", "methods", "datasets without options"], by_needs),
        pipes(["method", "what it does", "needs", "additional needs", "source"], by_method),
    )
    return "\n".join([_HEAD, _BY_NEEDS, tables[0], "", _BY_METHOD, tables[1], ""])


def _needs(method: Declaration) -> frozenset[str]:
    return method.needs if "own views" in method.needs else frozenset({"images", *method.needs})


def _datasets(needs: frozenset[str]) -> Iterator[str]:
    """Return the datasets that have all this without options."""
    for one in DECLARED_DATASETS.values():
        if one.facts and not any(one.facts.offers.isdisjoint(need.split(" or ")) for need in needs):
            yield one.name


def _more(method: Declaration) -> str:
    choices: dict[str, list[str]] = defaultdict(list)
    for name, hyperparameter in method.hyperparameters.items():
        for choice, need in sorted(hyperparameter.needs.items()):
            choices[need].append(f"{name}={choice}")
    return "; ".join(f"{_code(names)}: {NEED_IN_WORDS[need]}" for need, names in choices.items())


def _words(needs: frozenset[str]) -> str:
    order = list(NEED_IN_WORDS)
    return ", ".join(NEED_IN_WORDS[need] for need in sorted(needs, key=order.index))


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else _PAGE).write_text(which_method_page(), encoding="utf-8")
