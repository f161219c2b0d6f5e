import { expect, test } from 'vitest'
import { marked, pieces, typeName } from './cells'

const written = (cell: string) =>
  pieces(cell)
    .map((p) => (p.odd ? `[${p.text}]` : p.text))
    .join('')

test.each([
  ['Basel', 'Basel'],
  ['', ''],
  ['  ', '[··]'],
  [' a b ', '[·]a b[·]'],
  ['a\nb\r\n', 'a[␤]b[␍][␤]'],
  ['a\u00a0b', 'a[⍽]b'],
  ['ab\u202ecd', 'ab[U+202E]cd'],
  ['\u{e0041}x', '[U+E0041]x'],
  ['😀', '😀'],
  ['\ud800', '[U+D800]'],
])('pieces of %j', (cell, want) => expect(written(cell)).toBe(want))

test.each([
  ['VARCHAR', 'string'],
  ['BIGINT', 'int'],
  ['DECIMAL(18,2)', 'decimal2'],
  ['DECIMAL(10,4)', 'decimal(10,4)'],
  ['TIMESTAMP', 'datetime'],
  ['TIMESTAMP WITH TIME ZONE', 'timestamptz'],
  ['VARCHAR[]', 'list(string)'],
])('DuckDB calls %s what a script calls %s', (duckdb, want) => expect(typeName(duckdb)).toBe(want))

test.each([
  ['88;Basel;12,5;2026', '12,5', ['88;Basel;', '12,5', ';2026']],
  ['11,1,1', '1', ['11,', '1', ',1']],
  ['a,"x ""y""",b', 'x "y"', ['a,', '"x ""y"""', ',b']],
  ['a,b', 'c', ['a,b', '', '']],
  ['a,b', '', ['a,b', '', '']],
  [`1,${'x'.repeat(100)},2`, `${'x'.repeat(80)}…`, ['1,', 'x'.repeat(80), `${'x'.repeat(20)},2`]],
])('in %s the value %s is marked', (record, value, want) => expect(marked(record, value)).toEqual(want))
