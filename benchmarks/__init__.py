"""How fast `deniable` is, as ratios of two things timed in the same run.

    python -m benchmarks            everything at full size; replaces the stored results
    python -m benchmarks --quick    small sizes; stores nothing

A new benchmark is one function with the `@benchmark` decorator (see `registry`), in a module that
`run.MODULES` names.
"""
