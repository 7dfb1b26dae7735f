"""The analyses of one study in the order in which the page shows them."""

from __future__ import annotations

from typing import Any

from contrasweep.tuning.sensitivity.sections import curves, gains, importance, search
from contrasweep.tuning.sensitivity.sections.part import Part

PARTS: tuple[Part[Any], ...] = (*importance.PARTS, *curves.PARTS, *gains.PARTS, *search.PARTS)
