"""The life of PodGroups: created from labelled pods, kept true, deleted when their work is over.

Pure decisions: `plan` (what to do about a group), with `runs` (which pods belong to the present PodGroup),
`sizes` (minMember), `status` (phase and counts), `owners` (what a workload asks for), `mistakes` (labels that
users must correct) and `adoption` (labels for pods that the webhook did not see). `pods` is the record of a
pod, `members` the whole state of one group. `cache` and `lookup` assemble that state, `reconciler` carries
plans out through `writer`, and `process` wires it all.
"""
