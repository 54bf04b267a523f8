"""Every method as a scikit-learn classifier; predictions and explanations."""

from gcnsl.estimator.gcn_sl_classifier import GCNSLClassifier
from gcnsl.estimator.node_classifier import NodeClassifier

__all__ = ["GCNSLClassifier", "NodeClassifier"]
