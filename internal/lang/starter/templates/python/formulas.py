"""Formulas of the script; thalweg test runs them with rows of its own."""


def monthly_payment(principal, yearly_rate, months):
    """The equal payment at the end of each month that repays a loan."""
    rate = yearly_rate / 12
    if rate == 0:
        return round(principal / months, 2)
    return round(principal * rate / (1 - (1 + rate) ** -months), 2)
