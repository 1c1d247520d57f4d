"""What a site does with nodeproof: install it as a service, build assets, deploy, audit, and hand in a support archive."""
