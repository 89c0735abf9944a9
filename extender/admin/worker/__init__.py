"""The process that explains and simulates: `python -m extender.admin.worker`, started by `placement_process`.

Both ends speak pickles with a length before each, over the process's own stdin and stdout: nobody else can write to
them. The process keeps the node views of the last snapshot; only what has changed is sent again.
"""
