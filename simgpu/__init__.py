"""The simulated NVIDIA driver: libcuda, libnvidia-ml and a probe in C, and Python that builds and describes them."""
