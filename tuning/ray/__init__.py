"""Everything that runs on Ray; no other part of contrasweep imports it."""

import logging
import warnings

# In a notebook without ipywidgets, Ray and the tqdm that it imports say so at length. We do not use them.
logging.getLogger("ray.widgets.util").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", "IProgress not found")
