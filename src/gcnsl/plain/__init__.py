"""Models that are not neural: they are fitted by counting or by scikit-learn, and predict as torch modules."""
