from deniable.collect.client.client import AsyncClient as AsyncClient, Client as Client, Flushed as Flushed
from deniable.collect.client.ledger import Ledger as Ledger, default_path as default_path
from deniable.collect.client.records import (
    BudgetSpent as BudgetSpent,
    Deleted as Deleted,
    LedgerError as LedgerError,
    NotOpen as NotOpen,
    OptedOut as OptedOut,
    OptOuts as OptOuts,
    OtherRelation as OtherRelation,
    Receipt as Receipt,
    Refused as Refused,
    Spending as Spending,
    Submission as Submission,
    SuccessorDiffers as SuccessorDiffers,
    TookPart as TookPart,
    Untrusted as Untrusted,
)
from deniable.collect.client.telemetry import (
    AsyncTelemetry as AsyncTelemetry,
    ManualClock as ManualClock,
    Telemetry as Telemetry,
    why_off as why_off,
)
