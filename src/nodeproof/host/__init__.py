"""The only room that touches the machine: files, commands, devices, locks, sockets of the system."""
