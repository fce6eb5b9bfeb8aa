"""The HTTP service: takes reports, adds them up, and answers analysts. Needs the extra "serve"."""

from __future__ import annotations

from deniable._extras import require

for _module in ("starlette", "uvicorn"):
    require(_module, "serve")

from deniable.collect.server.run import create_app, serve  # noqa: E402
from deniable.collect.server.service import Settings  # noqa: E402

__all__ = ["Settings", "create_app", "serve"]
