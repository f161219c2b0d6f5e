{{ config(materialized='external', location=var('out') ~ '/account_year_perf.csv') }}
select
    account_id as "ARK fund",
    period as "Period",
    sector as "Sector",
    format('{:.2f}', cagr) as "Time-weighted annualized return %"
from {{ ref('account_rates') }}
where length(period) = 4 and sector = 'All'
order by account_id, period, sector
