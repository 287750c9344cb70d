"""What `causeway doctor` makes of the facts: one judge for each thing that goes wrong at users' sites."""
