"""`voiceloop bench load`: many clients of one server, in a process of their own."""
