select account_id
from {{ source('files', 'accounts') }}
where earliest_period_start <= date '{{ var("period_start") }}'
