"""What all tests share: one thread for each process.

The tests run in as many processes as there are cores. Threads beyond that wait for each other, busily: on two
cores they made a training step several times slower.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
