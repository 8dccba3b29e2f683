"""The live view: one page that shows a run, as it happens or afterwards."""
