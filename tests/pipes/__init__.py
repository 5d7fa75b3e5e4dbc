"""Programs on pipes."""
