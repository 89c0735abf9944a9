"""What a publisher needs: the version of a build, and everything that `make release` writes. Never installed.

`identity` says which build this is; wheel, images, manifests and chart take their versions from it.
"""
