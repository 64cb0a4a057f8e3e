"""progrl trains language-model agents that work with a user over many turns while using tools."""

__version__ = "0.1.0"
