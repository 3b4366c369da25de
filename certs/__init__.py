"""The authority and the serving certificate of the webhook. Pure cryptography: no files, no Kubernetes."""
