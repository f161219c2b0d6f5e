-- 140 bytes a row. The same rows in an order of their own, and by key.
COPY (
    SELECT (hash(i) % greatest({rows} // 15, 1))::BIGINT AS k, i AS n, repeat(substr(md5(i::VARCHAR), 1, 8), 16) AS text FROM range({rows}) t(i)
) TO '{out}/shuffled.parquet';
COPY (SELECT * FROM '{out}/shuffled.parquet' ORDER BY k, n) TO '{out}/clustered.parquet';
COPY (SELECT i AS k FROM range(least(1000, greatest({rows} // 15, 1))) t(i)) TO '{out}/keys.parquet';
