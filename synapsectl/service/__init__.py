"""The daemon as a service of this user: what is installed, where, and through which service manager."""
