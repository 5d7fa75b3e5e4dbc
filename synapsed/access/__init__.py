"""Who else may come in: devices of a person's that were paired, tokens for scripts, and what keeps guessing slow.

Pure but for the one file in which it is kept (`synapsed.access.book`); HTTP knows it as `synapsed.api.device_login`.
"""
