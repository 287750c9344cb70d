"""`causeway doctor`: look at both clusters of a flow, rehearse a transaction, say what is wrong."""
