"""`make images`: an OCI archive for each part and architecture, without a container engine, a registry or root.

Never installed.

An image has three layers on an empty root, and no shell:

1. Debian packages (`debian`): the Python interpreter and the libraries that it loads, pinned by `debian.lock`.
2. Python packages (`wheels`), pinned by requirements/run.lock.
3. Our wheel, its bytecode (`bytecode`) and a software bill of materials (`sbom`).

`layers` packs a folder as a layer, `oci` writes documents and archive. Both give the same bytes for the same files, so
that a second build has the same digests. `build` puts the layers together and keeps the first two in a cache folder.
"""
