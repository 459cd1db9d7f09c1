"""Answers that need no language model: rules understand a request for sure and answer it exactly.

`understand` finds the request, and `answer` the reply to it. Both work on text and numbers: the
time and the conversation so far are passed in.
"""
