"""Pages with tables that are filled from kept results: each stands between two marks."""

import re
from collections.abc import Mapping
from typing import Final

_FILLED: Final = re.compile(r"(<!-- filled: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, found: Mapping[str, str]) -> str:
    """Return a page with each table between `<!-- filled: NAME -->` and `<!-- end -->` put in anew."""
    return _FILLED.sub(lambda match: f"{match[1]}\n{found[match[2]]}\n\n{match[3]}", page)
