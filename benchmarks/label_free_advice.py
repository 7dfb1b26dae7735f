"""The advice of docs/label-free.md: sentences in plain English, each with the check of the records for it."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.label_free_reads import Study


@dataclass(frozen=True)
class Advice:
    """A sentence, and whether the records bear it out."""

    text: str
    holds: bool


def advice(study: Study) -> Iterator[str]:
    """Yield the blocks of the section on what to trust.

    Raises:
        ValueError: the records do not bear a sentence out; it has to be written anew.
    """
    yield "## What to trust"
    yield "\n".join(f"- {one}" for one in borne_out(_sentences(study)))


def borne_out(given: Iterator[Advice]) -> Iterator[str]:
    """Yield the sentences, all of which the records must bear out."""
    for one in given:
        if not one.holds:
            raise ValueError(f"the records of the study do not say: {one.text}")
        yield one.text


def _sentences(study: Study) -> Iterator[Advice]:
    yield from ()
