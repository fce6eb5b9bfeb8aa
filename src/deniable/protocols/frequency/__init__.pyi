from deniable.protocols.frequency.block_design import BlockDesign as BlockDesign
from deniable.protocols.frequency.grr import GRR as GRR
from deniable.protocols.frequency.hadamard_response import HadamardResponse as HadamardResponse
from deniable.protocols.frequency.local_hashing import BLH as BLH, OLH as OLH
from deniable.protocols.frequency.rappor import RAPPOR as RAPPOR
from deniable.protocols.frequency.sketch import CMS as CMS, HCMS as HCMS, OLHSketch as OLHSketch
from deniable.protocols.frequency.subset_selection import SubsetSelection as SubsetSelection
from deniable.protocols.frequency.unary import OUE as OUE, SUE as SUE, THE as THE
