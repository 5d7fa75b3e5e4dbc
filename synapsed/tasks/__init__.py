"""Tasks without an agent: their transitions, the text that is typed for them, who sent them, how replies find back."""
