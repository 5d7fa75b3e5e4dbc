"""What `synapsectl doctor` looks at."""
