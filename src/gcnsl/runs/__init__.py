"""Many fits: jobs, their results, and where they are carried out."""
