-- What a capable user would write who knows that id is a key: counts, and the first rows of each kind.
COPY (
    WITH pairs AS (
        SELECT a, b FROM read_parquet('{in}/a.parquet') a FULL JOIN read_parquet('{in}/b.parquet') b ON a.id = b.id
        WHERE a.id IS NULL OR b.id IS NULL OR a.txt IS DISTINCT FROM b.txt OR a.name IS DISTINCT FROM b.name
            OR a.price IS DISTINCT FROM b.price OR a.share IS DISTINCT FROM b.share
    )
    SELECT count(*) FILTER (b.id IS NULL) AS removed, count(*) FILTER (a.id IS NULL) AS added,
        count(*) FILTER (a.id IS NOT NULL AND b.id IS NOT NULL) AS changed,
        count(*) FILTER (a.id IS NOT NULL AND b.id IS NOT NULL AND a.price IS DISTINCT FROM b.price) AS price,
        min_by(a, a.id, 10) FILTER (b.id IS NULL) AS first_removed, min_by(b, b.id, 10) FILTER (a.id IS NULL) AS first_added,
        min_by({'a': a, 'b': b}, a.id, 10) FILTER (a.id IS NOT NULL AND b.id IS NOT NULL) AS first_changed
    FROM pairs
) TO '{out}/diff.json';
