"""An operator sets where a partition continues: adopt, accept-gap, reconcile, restart-topic, recover."""
