"""Simulated users: scripted, and the contract for others."""
