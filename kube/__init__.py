"""Kubernetes plumbing: session, errors, reflector, work queue, lease, event recorder.

Knows how to talk to an API server and nothing of gangs; that is the business of the processes above it.
"""
