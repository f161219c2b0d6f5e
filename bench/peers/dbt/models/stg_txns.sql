select account_id, concat('"', ts, '|', ticker, '|', qty, '|', price, '"') as packed
from {{ source('files', 'txns') }}
where ts > date '{{ var("period_start") }}' and ts <= date '{{ var("period_end") }}'
