"""What `causeway doctor` makes of the facts: one judge per thing that goes wrong at users' sites."""
