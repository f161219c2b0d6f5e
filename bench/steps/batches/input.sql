COPY (SELECT i AS id FROM range({rows}) t(i)) TO '{out}/rows.csv' (HEADER);
