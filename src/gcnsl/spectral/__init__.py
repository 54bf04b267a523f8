"""Spectral features F of the nodes (section 3.1 of the paper): SC, ESC and ESC-ANCH.

All three are the leading eigenvectors of a normalised similarity G = D^-1/2 S D^-1/2; they differ in S and in
what it costs to get there:

=========  =====================================================  =====================================
method     similarity S                                           cost of c components
=========  =====================================================  =====================================
SC         exp(-‖x_i - x_j‖² / 2σ²)                                 O(n²(d + c)): S is n × n
ESC        X Xᵀ                                                    products with X alone, S is never formed
ESC-ANCH   R Rᵀ, R the cosines of all rows to m anchor rows        products with X and m of its rows
=========  =====================================================  =====================================

:func:`sc`, :func:`esc` and :func:`esc_anch` map a feature matrix to F; :class:`SpectralFeatures` is the same as a
scikit-learn transformer, which also extends F to rows it has not seen.
"""

from gcnsl.spectral.estimator import SpectralFeatures
from gcnsl.spectral.gaussian import sc
from gcnsl.spectral.linear import esc, esc_anch

__all__ = ["SpectralFeatures", "esc", "esc_anch", "sc"]
