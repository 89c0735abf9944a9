"""The cards of this machine, from NVML. No other package imports pynvml.

Every call may block for milliseconds, `Nvml.wait_for_xid` for its whole timeout, and any call for the timeout of a card
that hangs: call them from a thread.
https://docs.nvidia.com/deploy/nvml-api/
"""
