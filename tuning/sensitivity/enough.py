"""How many trials each analysis needs before it says anything: below, the answer is "too few to tell"."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class TooFew:
    """What an analysis returns where the data cannot carry it.

    Attributes:
        found: how many there are.
        needed: how many it takes.
        what: of what, in the plural.
    """

    found: int
    needed: int
    what: str

    def __str__(self) -> str:
        return f"too few to tell: {self.found} {self.what}, {self.needed} needed"


SURROGATE: Final = 20
"""Trials with a final score (or an estimated one) from which a forest is fitted: marginals, tunability and
robust region. A half of them, from which an interval comes, is then 10."""

IMPORTANCE: Final = 20
"""Ended trials for PED-ANOVA: its best group has then 5 trials."""

INTERACTIONS: Final = 50
"""Scored trials for pairs: a 4 x 4 table of two parameters has then about 3 a cell."""

CATEGORY: Final = 3
"""Scored trials in a category (or a stratum of a conditional parameter) below which it is marked as thin."""

FIDELITY: Final = 10
"""Completed trials for a rank correlation: its 95 % interval at 0.5 is then about -0.2 to 0.9."""

BUDGET: Final = 5
"""Ended trials for the expected best score."""

REPLICATED: Final = 5
"""Degrees of freedom between the seeds of a trial, summed over trials: the noise is then known within a
factor of about 2.5 (95 % interval of a standard deviation: 0.62 to 2.45 times the estimate)."""

PAIRS: Final = 6
"""Pairs for a test by ranks: with 5 no two-sided Wilcoxon test can fall below 0.05."""

BLOCKS: Final = 5
"""Datasets for critical differences of mean ranks."""
