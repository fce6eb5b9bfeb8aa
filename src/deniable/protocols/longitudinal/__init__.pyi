from deniable.protocols.longitudinal.dbitflip import DBitFlip as DBitFlip
from deniable.protocols.longitudinal.evolving import Evolving as Evolving
from deniable.protocols.longitudinal.lgrr import LGRR as LGRR, LOLOHA as LOLOHA
from deniable.protocols.longitudinal.one_bit_mean import LOneBitMean as LOneBitMean
from deniable.protocols.longitudinal.unary import LOSUE as LOSUE, LRAPPOR as LRAPPOR, LSUE as LSUE
