"""The learned graph A* of the paper's section 3.2, and averages of node features over it, without an n × n matrix."""

from gcnsl.reconnection.operator import reconnect, reconnected_edges
from gcnsl.reconnection.problem import PairMemory

__all__ = ["PairMemory", "reconnect", "reconnected_edges"]
