"""The process that `python -m deviceplugin.space` keeps running: `python -m deviceplugin.space.supervising`."""
