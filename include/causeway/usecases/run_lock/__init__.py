"""Who may write to a flow: ownership, fences, the flow's own topics, and proof before each write."""
