-- In an order of their own, each id once. Of 10,000 rows the second file lacks one and
-- has another one in its place, further on; 100 have another price.
COPY (
    SELECT (i * 7919) % {rows} AS id, 'left ' || i AS txt, 'right ' || ((i * 104729) % {rows}) AS name,
        ((i * 31) % 1000000 / 100)::DECIMAL(18, 2) AS price, (i / 7)::DOUBLE AS share
    FROM range({rows}) t(i)
) TO '{out}/a.parquet';
COPY (
    SELECT * EXCLUDE i FROM (
        SELECT i, id, txt, name, (price + CASE WHEN i % 100 = 7 THEN 1 ELSE 0 END)::DECIMAL(18, 2) AS price, share
        FROM (SELECT row_number() OVER () - 1 AS i, * FROM read_parquet('{out}/a.parquet'))
        WHERE i % 10000 <> 3
        UNION ALL
        SELECT i + 5, {rows} + i, 'new ' || i, 'new', 1, 0 FROM range(3, {rows}, 10000) t(i)
    ) ORDER BY i
) TO '{out}/b.parquet';
