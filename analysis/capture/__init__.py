"""Captures alone: anybody's traffic, from one place or two, as figures and DataFrames."""
