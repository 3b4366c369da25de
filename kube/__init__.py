"""Kubernetes plumbing: session, errors, reflector, work queue, lease, event recorder.

It talks to an API server and knows nothing of gangs; the processes above it do.
"""
