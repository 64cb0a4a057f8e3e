"""A small shop, a forum and a content editor of ours, on loopback, with tasks in WebArena's manner.

They are not WebArena: its sites are others, and far larger.
"""

from progrl.benchmarks.sites.adapter import LocalSites

__all__ = ["LocalSites"]
