"""Protocols for answers that are asked again and again."""

from __future__ import annotations

from deniable.protocols.longitudinal.lgrr import LGRR

__all__ = ["LGRR"]
