from deniable.protocols.ranges.ranges import Ranges as Ranges
from deniable.protocols.ranges.rectangles import Rectangles as Rectangles
