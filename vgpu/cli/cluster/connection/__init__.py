"""How a command finds the admin REST, proves who it is, and asks; what an answer other than a success means."""
