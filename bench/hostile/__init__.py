"""Hostile input for all of the package: whatever it is given, it works, or refuses in one line what to change."""
