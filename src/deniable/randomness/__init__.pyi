from deniable.randomness.kernels import IntegerWeights as IntegerWeights, KnownBoundaries as KnownBoundaries
from deniable.randomness.secure import (
    SYSTEM as SYSTEM,
    Counting as Counting,
    Secure as Secure,
    Simulation as Simulation,
    source_of as source_of,
)
from deniable.randomness.source import (
    Bits as Bits,
    Enumeration as Enumeration,
    Exhaustive as Exhaustive,
    Tied as Tied,
    exhaust as exhaust,
    floyd as floyd,
    listed_bits as listed_bits,
    written_number as written_number,
)
