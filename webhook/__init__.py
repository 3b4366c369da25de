"""Admission: label objects that ask for Fluence, and leave all others unchanged.

A review arrives over TLS (`server`, `app`), is decoded into `models`, decided in `decide` by the rules of
`groups.workloads`, and answered with the operations of `patch`. No API call in the request path: `tls`
makes the only ones, at start. `registration` writes the chart's template from the same table of rules.
"""
