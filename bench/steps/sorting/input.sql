COPY (
    SELECT (hash(i) % 1000000007)::BIGINT AS k, md5(i::VARCHAR) AS s, ((i % 100000)::DECIMAL(18, 2) / 100)::DECIMAL(18, 2) AS v
    FROM range({rows}) t(i)
) TO '{out}/rows.parquet';
