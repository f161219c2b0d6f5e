COPY (
    SELECT i AS id, 'order ' || (hash(i) % 1000000) || ' item ' || substr(md5(i::VARCHAR), 1, 12) || ' ' || substr(md5((i * 7)::VARCHAR), 1, 20) AS text
    FROM range({rows}) t(i)
) TO '{out}/rows.parquet';
