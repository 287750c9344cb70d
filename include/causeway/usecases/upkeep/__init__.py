"""What a flow keeps up besides records: topic settings, ACLs, heartbeats."""
