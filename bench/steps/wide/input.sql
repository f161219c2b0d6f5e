-- A script of {rows} nodes, four at least: a load, then tables and lookups that read each other in turn, and a file.
CREATE MACRO fields() AS '
      fields:
        id: {expression: r.id, type: string}
        price: {expression: r.price, type: decimal2}
        total: {expression: "decimal2.iif(r.price > 10, r.price * 1 + r.price, r.price)", type: decimal2}
        label: {expression: "strings.ReplaceAll(fmt.Sprintf(\"%s %s\", r.id, string(r.price)), \" \", \"_\")", type: string}';
CREATE TABLE nodes AS
    SELECT 0 AS n, 'nodes:
  n0:
    type: file_table
    r:
      urls: [in.csv]
      columns:
        id: {col_type: string, csv: {col_hdr: id}}
        price: {col_type: decimal2, csv: {col_hdr: price}}
    w:
      name: t0' || fields() || '
      indexes: {idx_t0: non_unique(id)}' AS text
    UNION ALL
    SELECT i, format('
  n{0}:
    type: {2}
    r: {{table: t{1}}}{3}
    w:
      name: t{0}
      having: w.price > 0 && w.id != ""', i, i - 1,
        if(i % 2 = 0, 'table_lookup_table', 'table_table'),
        if(i % 2 = 0, '
    l: {index_name: idx_t0, join_on: r.id, join_type: left, group: false}', '')) || fields()
    FROM range(1, greatest({rows}, 4) - 1) t(i)
    UNION ALL
    SELECT {rows}, format('
  out:
    type: table_file
    r: {{table: t{0}}}
    w:
      url_template: out.csv
      columns:
        - {{name: id, expression: r.id, type: string, csv: {{header: id, format: "%s"}}}}', greatest({rows}, 4) - 2);
COPY (SELECT unnest(string_split(string_agg(text, '' ORDER BY n), chr(10))) FROM nodes)
TO '{out}/wide.yaml' (HEADER false, QUOTE '', ESCAPE '', DELIMITER '\t');
