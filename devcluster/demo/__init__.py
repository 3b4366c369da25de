"""`python -m devcluster.demo`: Fluence at work, in about a minute, on a real control plane."""
