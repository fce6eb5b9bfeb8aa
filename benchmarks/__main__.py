"""`python -m benchmarks`, from the root of the project."""

from __future__ import annotations

import os

if __name__ == "__main__":
    # Numerical libraries read these when they are first imported, so they come before every other import.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"

    from benchmarks.run import main

    raise SystemExit(main())
