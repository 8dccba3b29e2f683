"""Policies of the controller: one file each, chosen by its name (:mod:`..policy`)."""
