"""Collecting over the network: the device's client with its ledger, the service that adds up, and where it keeps sums."""
