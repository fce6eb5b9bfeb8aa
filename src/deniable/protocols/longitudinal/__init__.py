"""Protocols for answers that are asked again and again."""

from __future__ import annotations

from deniable.protocols.longitudinal.dbitflip import DBitFlip
from deniable.protocols.longitudinal.evolving import Evolving
from deniable.protocols.longitudinal.lgrr import LGRR, LOLOHA
from deniable.protocols.longitudinal.one_bit_mean import LOneBitMean
from deniable.protocols.longitudinal.unary import LOSUE, LRAPPOR, LSUE

__all__ = ["LGRR", "LOLOHA", "LOSUE", "LRAPPOR", "LSUE", "DBitFlip", "Evolving", "LOneBitMean"]
