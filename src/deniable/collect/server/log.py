"""The service's log: one JSON object a line on standard error, about the service and nobody else.

Never      an address, a header, a path, a body, an id, or the text of an exception, which could quote one of them
Always     the time to the second, the event, and numbers or kinds
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any


def log(event: str, **fields: str | int | float | None) -> None:
    """One event."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"time": moment, "event": event} | fields, separators=(",", ":"))
    # One write, so that lines of several threads and workers stay whole.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class Quiet(logging.Handler):
    """What the HTTP library logs, without the arguments of its messages."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"level": record.levelname.lower(), "message": str(record.msg).strip()}
        if record.exc_info and record.exc_info[0] is not None:
            fields["kind"] = record.exc_info[0].__name__
        log("http", **fields)


def quiet_library() -> None:
    """Send what the HTTP library logs through here, and its log of accesses nowhere."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = False
        logger.setLevel(logging.CRITICAL + 1 if name == "uvicorn.access" else logging.ERROR)
    logging.getLogger("uvicorn.error").addHandler(Quiet())
