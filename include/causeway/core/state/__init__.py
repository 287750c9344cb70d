"""What a flow keeps on its target besides records and the offset map: owner, fences, positions, ledgers."""
