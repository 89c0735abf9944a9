"""The domain: what a share of a GPU is, who asks for one, and where it lands.

Standard library only; no clock, no environment, no input or output.
"""

__version__ = "0.1.0"
