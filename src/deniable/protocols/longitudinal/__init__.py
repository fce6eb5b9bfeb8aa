"""Protocols for answers that are asked again and again."""

from __future__ import annotations

from deniable.protocols.longitudinal.evolving import Evolving
from deniable.protocols.longitudinal.lgrr import LGRR
from deniable.protocols.longitudinal.loloha import LOLOHA
from deniable.protocols.longitudinal.rappor import LRAPPOR
from deniable.protocols.longitudinal.unary import LOSUE, LSUE

__all__ = ["LGRR", "LOLOHA", "LOSUE", "LRAPPOR", "LSUE", "Evolving"]
