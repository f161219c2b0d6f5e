select account_id, concat('"', d, '|', ticker, '|', qty, '"') as packed
from {{ source('files', 'holdings') }}
where d between date '{{ var("period_start") }}' and date '{{ var("period_end") }}'
