"""Two logs compared record by record, directly or through the offset map."""
