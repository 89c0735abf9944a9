"""Gangs: pods that start together or not at all.

The words of this package:

- gang: a number of pods that start together; member: one of them. `WatchedGang` is what the watch shows of a gang.
- plan: the node and the cards that each member gets, reserved until a deadline. A gang has one plan at a time.
- progress: what is remembered of a gang beside its pods: its plan, failed attempts, when it is tried again. Its phase
  is waiting, planned, partial (some members are bound) or started.
- refused: filter has answered a member with no node; wake: have kube-scheduler try such members again.
- hold: the room that is kept free for one gang that has waited for long.

How a gang starts:

1. `tracker` takes what the watch shows of each gang (`watched_gang`): which members are bound, and which wait. A member
   is refused until as many members exist as the gang has.
2. `member_filter` answers filter. The first call for a member of a complete gang has all members planned at once
   (`plan_maker`, with the members that `members_to_plan` chooses, on the nodes that `candidate_nodes` finds), and
   reserves the cards of all of them. Each member is then answered with its own node. A plan is made in `time_slices`.
3. `bind_gate` holds Bindings back until every member has come to be bound: kube-scheduler binds pod by pod, and any
   member may be refused by something that no extender sees.
4. `deadlines` ends what takes too long. A plan has a deadline, after which its cards are free again. Members that are
   bound while others are missing are evicted at the deadline. An attempt that failed is followed by a back-off.
5. `room_holding` keeps room free for a gang that has waited for long; `room_to_hold` chooses where (ADR 74).

What is known meanwhile: `known_gangs` has each gang as it is watched, and its `gang_progress`; `current_plans` opens,
checks and ends the `plan` of each; `refused_members` wakes members; `waiting_text` says why a gang waits.

Only the leader plans, opens gates and evicts. Nothing is stored: a new leader counts the members that are bound, and
plans the others around them.
"""
