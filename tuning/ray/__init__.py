"""Everything that runs on Ray; no other part of contrasweep imports it."""

import logging

# In a notebook without ipywidgets, Ray says so twice. We do not use them.
logging.getLogger("ray.widgets.util").setLevel(logging.WARNING)
