{{ config(materialized='external', location=var('out') ~ '/account_period_sector_perf.csv') }}
select
    account_id as "ARK fund",
    period as "Period",
    sector as "Sector",
    format('{:.2f}', cagr) as "Time-weighted annualized return %"
from {{ ref('account_rates') }}
order by account_id, period, sector
