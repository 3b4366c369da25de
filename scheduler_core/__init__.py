"""Gang matching: which nodes hold a whole gang, or why none do.

Pure: whole numbers in, a placement or a reason out; no clock, no input or output. How it fits together:

    quantity     "1500m", "64Mi"        -> whole numbers
    requests     containers of a pod    -> what it asks for      (rules R1 to R8)
    constraints  selectors, tolerations -> values; `Shape` = all that makes members alike
    nodes        nodes                  -> columns: labels and taints interned to numbers
    ledger       nodes and usage        -> what is allocatable and used, and what is assumed
    eligibility  constraints            -> which nodes may be used at all
    packing      slots of each node     -> which node takes how many of one shape
    search       several shapes         -> greedy orders, then a bounded exact search
    match        ledger and gang        -> Placement | Refusal
    reasons      Refusal                -> the sentence that a user reads
"""
