"""GCN-SL as a scikit-learn classifier."""

from gcnsl.estimator.classifier import GCNSLClassifier
from gcnsl.estimator.nodes import NodeClassifier

__all__ = ["GCNSLClassifier", "NodeClassifier"]
