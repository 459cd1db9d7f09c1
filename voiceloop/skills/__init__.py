"""What needs no model: requests that rules understand for sure, and exact answers to them.

`understand` knows what is asked, `answer` what is said to it. All of it is text and numbers: the
time, the place and what was said before are passed in.
"""
