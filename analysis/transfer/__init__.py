"""Packets of one transfer as series and events: rates, order, round trips, stalls."""
