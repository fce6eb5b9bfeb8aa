"""What tests take hold of inside a client: its steps, its sleep and its timer."""

from __future__ import annotations


def hooked(client, step=None, sleep=None, timer=None):
    """The client, which calls `step` at every step of its own and of its ledger, and waits as told."""
    if step is not None:
        client._step = client.ledger._step = step
    client._sleep = sleep or client._sleep
    client._timer = timer or client._timer
    return client
