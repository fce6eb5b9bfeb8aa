"""Headers that every answer has: nothing is sniffed, framed, referred from or cached unless it says so."""

from __future__ import annotations

from starlette.responses import Response

SAFE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Fixed:
    """Headers to be added to an answer, unless it has its own."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    def add(self, response: Response) -> None:
        own = {name for name, _ in response.raw_headers}
        response.raw_headers.extend([pair for pair in self._raw if pair[0] not in own])


PRIVATE = Fixed(SAFE | {"Cross-Origin-Resource-Policy": "same-origin"})
PUBLIC = Fixed(
    SAFE
    | {
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "ETag, Retry-After",
    }
)
