-- Ties are broken as the script's are: by where a row stands in the input.
COPY (
    SELECT k, s, v FROM (SELECT k, s, v, file_row_number AS n FROM read_parquet('{in}/rows.parquet')) ORDER BY k, s, n
) TO '{out}/sorted.csv' (HEADER);
