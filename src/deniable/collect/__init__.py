"""Collecting over the network: devices with a ledger, a service that adds up, and where the sums are kept."""
