"""All analyses of one study, in the order of the page.

An analysis is added in three places: a module of this package computes it, `analyse.StudySensitivity` holds
its result, and a part in one of the `sections` shows it in words, figures and tables.
"""

from typing import Any

from contrasweep.tuning.sensitivity.sections import curves, gains, importance, search
from contrasweep.tuning.sensitivity.sections.part import Part

PARTS: tuple[Part[Any], ...] = (*importance.PARTS, *curves.PARTS, *gains.PARTS, *search.PARTS)
