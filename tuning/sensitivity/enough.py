"""How many trials each analysis needs; with fewer, its result is "too few to tell"."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class TooFew:
    """The result of an analysis that has too few trials.

    Attributes:
        found: the number of things there are.
        needed: the number the analysis needs.
        what: the things counted, in the plural; of a percentage, what it is a part of.
        unit: what follows the numbers: " %" for percentages.
    """

    found: int
    needed: int
    what: str
    unit: str = ""

    def __str__(self) -> str:
        return f"too few to tell: {self.lack}"

    @property
    def lack(self) -> str:
        """What there is, and how much of it is needed."""
        return f"{self.there_are}, {self.need} needed"

    @property
    def there_are(self) -> str:
        """What there is: `9 trials with a score`."""
        return f"{self.found}{self.unit} {self.what}"

    @property
    def need(self) -> str:
        """How much is needed: `20`, or `50 %`."""
        return f"{self.needed}{self.unit}"

    @property
    def counted(self) -> str:
        """What both numbers count: `trials with a score`, or `% of the variance`."""
        return f"{self.unit} {self.what}".strip()


SURROGATE: Final = 20
"""Trials with a score (or an estimated one) for the forest: marginals, tunability and robust region.
Intervals come from halves, so a half has at least 10."""

IMPORTANCE: Final = 20
"""Trials for PED-ANOVA and for effects. In simulated searches of 24 trials, a parameter behind four fifths of
the signal was found to matter in 98 % or more (docs/sensitivity-validation.md)."""

LINK: Final = 6
"""Trials with scores at two rungs, to estimate how the others would have gone on. The noise around the line
then has four degrees of freedom and is known within a factor of three. `KNOWN` sorts out the rest."""

REACHED: Final = 10
"""Trials that reached a rung, to say what parameters do to its scores. With fewer, estimates would decide."""

KNOWN: Final = 0.5
"""The share of the variance of the scores at a rung that must not be uncertainty of estimated ones."""

INTERACTIONS: Final = 50
"""Scored trials for pairs: a 4 x 4 table of two parameters then has about 3 in each cell."""

CATEGORY: Final = 3
"""A category, or a condition of a conditional parameter, with fewer scored trials is marked as thin."""

FIDELITY: Final = 10
"""Completed trials for a rank correlation: the 95 % interval of 0.5 is then about -0.2 to 0.9."""

BUDGET: Final = 5
"""Completed trials for the expected best score. The others count as the worst of them, so that with one all
scores would be alike."""

REPLICATED: Final = 5
"""Degrees of freedom of the noise of a run: repeated runs, see `noise`. The noise is then known within a
factor of about 2.5 (the 95 % interval of a standard deviation is 0.62 to 2.45 times the estimate)."""

PAIRS: Final = 6
"""Pairs for a test by ranks: with 5 pairs, a two-sided Wilcoxon test never falls below 0.05."""

BLOCKS: Final = 5
"""Datasets for critical differences of mean ranks."""
