"""Results as text for a terminal and as pages in one file."""
