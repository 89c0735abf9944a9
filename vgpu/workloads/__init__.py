"""Tools for GPU programs that need no GPU: what a program needs, and why it uses its card badly."""
