"""Checks of `synapsectl doctor`."""
