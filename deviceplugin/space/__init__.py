"""`python -m deviceplugin.space`: the supervisor of MPS daemons, which runs in a DaemonSet of its own (ADR 174).

It is in this package because it has the device plugin's image; it shares files below the state directory with the
device plugin, and imports nothing of it.
"""
