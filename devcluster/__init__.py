"""A real Kubernetes control plane on this machine, for the demo, the tests and the benchmarks.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler run as plain processes on loopback; kwok
plays the nodes and their kubelets. Fluence runs in it as on any cluster: its chart is installed by
helm, and its three processes run beside the control plane under the chart's service accounts.

    binaries, build, golang   where the programs come from
    spec, paths, ports, identities   what one cluster is made of
    components, stages.yaml, nodes, chart   what runs in it, and with which flags
    child, supervisor, control   the process that owns all others, and the protocol to control it
    cluster   what Python code uses: `start`, `find`, `RunningCluster`
    commands   `python -m devcluster`
"""
