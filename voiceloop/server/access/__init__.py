"""Who may connect to the server, and how much one client may use."""
