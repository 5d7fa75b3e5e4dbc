"""JSON documents with large texts in them: read, checked and written piece by piece, so that no piece blocks the event
loop for long. The package knows nothing of the documents' contents."""
