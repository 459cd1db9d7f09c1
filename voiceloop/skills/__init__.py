"""Skills: rules that answer a request exactly, without the language model.

`understand` finds the request, if a rule fits all of the user's words. `answer` makes the answer.
Neither reads a clock or keeps a state: the current time and the conversation so far are arguments.
"""
