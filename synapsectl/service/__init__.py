"""The daemon as a service of this user: its files, their places, and the service manager."""
