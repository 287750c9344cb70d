"""The journal of failovers on the target: read whole, written in one piece for each step."""
