from deniable.audit.verdict import Audit as Audit, audit as audit
