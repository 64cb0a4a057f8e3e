"""The command line, `progrl ...`: thin, over what the library's packages do."""

from progrl.cli.app import main

__all__ = ["main"]
