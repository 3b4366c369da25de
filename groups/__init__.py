"""What a gang is, for all three processes: the contract, the PodGroup object, membership, workloads. Pure."""
