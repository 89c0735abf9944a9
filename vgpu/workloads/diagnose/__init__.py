"""Why a program uses its GPU badly, read from its script, its logs or its files.

Each check is a pure function from what was read to findings. A finding's code is a row of `catalogue`, which says what
such a program loses and what to do.
"""
