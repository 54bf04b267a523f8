"""Builds the graph that ``gcnsl.datasets.debian`` loads; ``python -m tools.debian_graph --help`` says how."""
