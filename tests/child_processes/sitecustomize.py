"""Every Python that the tests start imports this first: it collects garbage a tenth as often as usual.

While torch and Ray are imported, garbage is collected 800 times, and hardly any is found. That takes a
quarter of the processor time of the imports, and the tests start a hundred processes that import both.
"""

import gc

gc.set_threshold(10_000, 100, 10)
