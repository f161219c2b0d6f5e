package property

// formulas is the Python code that nodes of py_calc call.
const formulas = `
def twice(x):
    return None if x is None else x * 2
`
