-- Both sides in an order of their own; each key once on either.
COPY (
    SELECT (i * 7919) % {rows} AS id, 'left ' || i AS txt, i % 100 AS qty FROM range({rows}) t(i)
) TO '{out}/left.parquet';
COPY (
    SELECT (i * 104729) % {rows} AS id, 'right ' || i AS name, ((i % 10000)::DECIMAL(18, 2) / 100)::DECIMAL(18, 2) AS price
    FROM range({rows}) t(i)
) TO '{out}/right.parquet';
