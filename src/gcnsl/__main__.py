"""``python -m gcnsl``: the command line."""

from gcnsl.cli import main

main()
