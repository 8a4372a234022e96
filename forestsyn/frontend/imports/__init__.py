"""Readers of what people have: each turns one kind of file into a native topology document, with its guesses."""
