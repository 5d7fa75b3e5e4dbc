"""`synapsectl inbox`: everything that waits for a person, answered with one key."""
