"""Admission: label what opted in, harmless to everything else.

A review comes in over TLS (`server`, `app`), is read into `models`, decided in `decide` by the rules of
`groups.workloads`, and answered with the operations of `patch`. No API call in the request path: `tls`
makes the only ones, at start. `registration` writes the chart's template from the same table of rules.
"""
