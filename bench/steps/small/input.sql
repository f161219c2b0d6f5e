COPY (
    SELECT i AS id, 'item ' || i AS name, ((i % 10000)::DECIMAL(18, 2) / 100)::DECIMAL(18, 2) AS price FROM range({rows}) t(i)
) TO '{out}/items.csv' (HEADER);
