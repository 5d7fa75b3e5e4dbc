"""Other hosts of one's own: their daemons' control sockets, brought here by the user's own ssh.

`ssh` says how ssh is called and read, `tunnel` keeps one host's connection up, `hosts` has them all. What is sent
there goes the way of every message to an agent elsewhere (`synapsed.parts.elsewhere.externals`).
"""
