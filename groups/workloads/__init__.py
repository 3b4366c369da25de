"""What a workload looks like: the table of rules, counting of members, names of groups. Pure.

Shared by the webhook and the controller, which must count and name alike (rule A8). `rules` reads the
table, `shapes` reads objects that may lack anything, `sizing` counts, `adopt` names.
"""
