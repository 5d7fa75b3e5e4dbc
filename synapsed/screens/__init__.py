"""The screens of all programs, drawn in processes without rights: bytes in, looks out (docs/adr/0033)."""
