from deniable.audit.verdict import Audit as Audit, audit as audit
from deniable.privacy.attacks import (
    Attack as Attack,
    Repeated as Repeated,
    attack as attack,
    averaging as averaging,
    surest as surest,
)
from deniable.privacy.composition import (
    Account as Account,
    CannotCompose as CannotCompose,
    Composition as Composition,
    Loss as Loss,
    OverBudget as OverBudget,
    compose as compose,
    parallel as parallel,
    ratios as ratios,
    sequential as sequential,
)
from deniable.privacy.guesses import (
    Case as Case,
    Evidence as Evidence,
    Guess as Guess,
    correlated as correlated,
    household as household,
    profile_inference as profile_inference,
    recurrence as recurrence,
    reidentify as reidentify,
)
from deniable.privacy.poisoning import (
    ATTACKS as ATTACKS,
    Gain as Gain,
    Inspection as Inspection,
    Moved as Moved,
    defences as defences,
    forge as forge,
    gain as gain,
    gains as gains,
    inspect as inspect,
)
from deniable.privacy.shuffle import (
    CannotShuffle as CannotShuffle,
    Shuffled as Shuffled,
    fewest_people as fewest_people,
    largest_epsilon as largest_epsilon,
    shuffled as shuffled,
)
from deniable.protocols.numeric.secure_sum import (
    Collector as Collector,
    ImpossibleSum as ImpossibleSum,
    SecureSum as SecureSum,
    TooFewShares as TooFewShares,
    close_epoch as close_epoch,
)
