"""Node classification on graphs whose neighbours may disagree."""

__version__ = "0.1.0"
