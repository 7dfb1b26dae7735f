"""What a page with a map holds for its script."""

import json
import re
from typing import Any


def map_content(page: str) -> Any:
    """Return the content of the first map of a page."""
    found = re.search(
        r'<figure class="map".*?<script type="application/json">(.*?)</script>', page, re.DOTALL
    )
    assert found is not None
    return json.loads(found[1])
