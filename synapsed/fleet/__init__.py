"""The fleet: many hosts with one address space, over a broker that may lose everything."""
