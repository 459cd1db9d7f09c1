"""Answers without a language model: rules answer a request exactly, if they understand all of it.

`understand` finds the request, and `answer` the reply to it. Both work on text and numbers: the
time and the conversation so far are passed in.
"""
