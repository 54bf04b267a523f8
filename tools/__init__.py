"""Programs that maintainers run from a checkout; not part of the package."""
