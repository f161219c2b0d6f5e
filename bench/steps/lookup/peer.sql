SET preserve_insertion_order = false;
COPY (
    SELECT l.id, l.txt, coalesce(r.name, '') AS name, coalesce(l.qty * r.price, 0)::DECIMAL(18, 2) AS total
    FROM read_parquet('{in}/left.parquet') l LEFT JOIN read_parquet('{in}/right.parquet') r USING (id)
) TO '{out}/joined.csv' (HEADER);
