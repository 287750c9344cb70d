"""The rights that each command needs, and the command that grants each: the one list of them."""
