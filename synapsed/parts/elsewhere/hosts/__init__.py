"""Other hosts of the user's: their daemons' control sockets, brought here by the user's own ssh.

`ssh` has the command lines of ssh and reads its output, `tunnel` keeps one host's connection up, `hosts` has them all.
Messages go there as to every agent elsewhere (`synapsed.parts.elsewhere.externals`).
"""
