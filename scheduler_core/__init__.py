"""Gang matching: which nodes hold a whole gang, or why none do.

Pure: whole numbers in, a placement or a reason out; no clock, no input or output. How it fits together:

    quantity     "1500m", "64Mi"        -> whole numbers
    requests     containers of a pod    -> what it asks for      (rules R1 to R8)
    constraints  selectors, tolerations -> values; `Shape`: equal shapes are interchangeable
    nodes        nodes                  -> columns: labels and taints interned to numbers
    kinds        namespace, labels ...  -> one shared object for equal pods
    placed       pods on nodes          -> the record of each: seen, assumed or held
    ledger       nodes and placed pods  -> kept up to date; `view()` is a snapshot of it
    view         a snapshot             -> what is free; `without`, `with_nodes`, `at`
    eligibility  constraints            -> which nodes may be used at all
    limits       placed pods, amounts   -> how many members each node takes: one rule, one limit
    packing      slots of each node     -> which node takes how many of one part
    search       several parts          -> greedy orders and bounds; `exact` is the bounded search
    match        view and gang          -> Placement | Refusal
    shortage     parts that do not fit  -> the numbers of a refusal
    reasons      Refusal                -> the sentence that a user reads
"""
