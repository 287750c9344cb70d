"""The offset map: its ranges, its bytes, its maintenance, and exact translation both ways."""
