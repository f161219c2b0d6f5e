with txns as (
    select account_id, string_agg(packed, ',') as packed from {{ ref('stg_txns') }} group by account_id
),
holdings as (
    select account_id, string_agg(packed, ',') as packed from {{ ref('stg_holdings') }} group by account_id
)
select
    account_id,
    concat('[', txns.packed, ']') as txns,
    concat('[', holdings.packed, ']') as holdings
from {{ ref('stg_accounts') }}
left join txns using (account_id)
left join holdings using (account_id)
