"""JSON documents with large texts in them: read, checked and written piece by piece, so that no piece holds up the
event loop for long. It does not know the documents' contents."""
