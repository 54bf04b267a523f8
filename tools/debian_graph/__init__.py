"""Builds the graph that ``gcnsl.load("debian")`` loads; ``python -m tools.debian_graph --help`` says how."""
