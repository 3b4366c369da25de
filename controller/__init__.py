"""The life of PodGroups: made from labelled pods, kept true, deleted when their work is over.

`plan` and `adoption` decide and are pure, `owners` says what may still come from a workload, `cache`
assembles the whole state of one group, `reconciler` carries plans out through `writer`, and `process`
wires it all.
"""
