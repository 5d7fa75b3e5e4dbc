"""`synapsectl upgrade --check`: how synapsed was installed, an offered version, and the consequences of taking it."""
