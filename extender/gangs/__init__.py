"""Gangs: pods that start together or not at all.

1. `group` is what the watch shows of a gang: which members are bound, and which wait. A member is refused until as many
   members exist as the gang has.
2. `planner` answers filter. The first call for a member of a complete gang plans all members at once (`planning`, on
   the nodes that `candidates` finds), and reserves the cards of all of them. Each member is then answered with its own
   node. A plan is made in `slices` of time.
3. `gate` holds Bindings back until every member has come to be bound: kube-scheduler binds pod by pod, and any member
   may be refused by something that no extender sees.
4. `deadlines` ends what takes too long. A plan has a deadline, after which its cards are free again. Members that are
   bound while others are missing are evicted at the deadline. An attempt that failed is followed by a back-off.
5. `holding` keeps room free for a gang that has waited for long; `hold_target` chooses where (ADR 74).
6. `records` keeps what is known of each gang, and `book` takes what the watch shows of it. `plans` opens and ends its
   plans, `retries` has refused members tried again, and `words` says why a gang waits.

Only the leader plans, opens gates and evicts. Nothing is stored: a new leader counts the members that are bound, and
plans the others around them.
"""
