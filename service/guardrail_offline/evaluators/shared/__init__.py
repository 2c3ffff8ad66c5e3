"""Parts that several evaluators need; nothing here registers one."""
