"""What happened: every decision, start, end and refusal, stored in SQL for reports; never read to place a pod.

1. The verbs and the watches hand events to the recorder (`recording`), which never blocks.
2. A thread appends them to the spill, a file on this machine, and syncs it: from then on an event survives `kill -9`.
3. A process of its own (`drain`) reads the spill in order and writes to SQL (`storage`). Events have unique keys, so
   that a second replica, or a repetition after a crash, adds nothing.
4. `reporting` answers questions: usage by namespace, owner, label, card, node or day, and the list of events.
"""
