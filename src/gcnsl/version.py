"""The version of the package, in a module that every other one can import."""

__version__ = "0.2.0"
