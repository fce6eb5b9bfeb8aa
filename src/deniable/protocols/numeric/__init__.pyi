from deniable.protocols.numeric.mean_table import MeanTable as MeanTable
from deniable.protocols.numeric.moments import Moments as Moments
from deniable.protocols.numeric.planar_laplace import PlanarLaplace as PlanarLaplace
from deniable.protocols.numeric.secure_sum import SecureSum as SecureSum
from deniable.protocols.numeric.window import (
    OneBitMean as OneBitMean,
    Piecewise as Piecewise,
    SquareWave as SquareWave,
    Window as Window,
)
