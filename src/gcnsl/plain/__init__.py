"""Models that are not neural: fitted by counting, by scikit-learn or by LightGBM, they predict as torch modules."""
