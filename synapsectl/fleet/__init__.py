"""What `synapsectl fleet` is made of: what is asked of `synapsed fleet`, the broker's unit, what is shown."""
