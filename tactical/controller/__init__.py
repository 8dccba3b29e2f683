"""The controller: a thin os-ken application over pure decisions."""
