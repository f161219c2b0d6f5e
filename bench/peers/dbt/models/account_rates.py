import pyarrow as pa


def model(dbt, session):
    """The rates of each account by period and sector, from the formulas in Python on all cores."""
    from rates import account_rates, in_processes  # of module_paths

    activity = dbt.ref("account_activity")
    same = (
        dbt.config.get("period_start"),
        dbt.config.get("period_end"),
        dbt.config.get("prices_file"),
        dbt.config.get("companies_file"),
    )

    def accounts():
        while account := activity.fetchone():
            yield (*account, *same)

    found = in_processes(account_rates, accounts(), int(dbt.config.get("processes")))
    columns = zip(*(row for rows in found for row in rows))
    return pa.table(list(columns), names=["account_id", "period", "sector", "twr", "cagr"])
