"""`python -m progrl.cli`: the command line where no script is installed."""

from progrl.cli.app import main

main()
