"""What every process of Fluence shares: the contract, the workload rules, the command line."""
