"""An agent that plays what the compatibility kit asks of it, and the kit itself, run from where it is."""
