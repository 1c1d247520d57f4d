"""nodeproof: prove a node before you trust it, or any number it gives you."""

__version__ = "0.1.0"

__all__ = ["__version__"]
