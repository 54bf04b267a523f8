"""Spectral features F of the nodes (section 3.1 of the paper): SC, ESC and ESC-ANCH.

All three are the leading eigenvectors of a normalised similarity G = D^-1/2 S D^-1/2, where D holds the row sums of S.
They differ in S and in the cost of c components:

=========  =====================================================  ================================================
method     similarity S                                           cost of c components
=========  =====================================================  ================================================
SC         exp(-‖x_i - x_j‖² / 2σ²)                                 O(n²(d + c)) time; S is n × n
ESC        X Xᵀ                                                    products with X; S is never formed
ESC-ANCH   R Rᵀ, R the cosines of all rows to m anchor rows        products with X and with m of its rows
=========  =====================================================  ================================================

:class:`SpectralFeatures` is a scikit-learn transformer, which also extends F to rows it was not fitted to, and
:class:`AddSpectralFeatures` a transform of PyTorch Geometric.
"""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.spectral.transformer import AddSpectralFeatures, SpectralFeatures
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = ["AddSpectralFeatures", "SpectralFeatures"]
