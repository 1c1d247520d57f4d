"""Every model that this box can serve, one after the other, through the same short examination."""
