"""Domains: tasks, the environments they are played in, experts, and what users know."""
