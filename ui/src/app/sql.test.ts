import { expect, test } from 'vitest'
import type { Page } from '../api/schema'
import { conditionOf, offsetOf, spotOf, tableOf } from './sql'

test('an error has the place that the server says', () => {
  expect(spotOf('line 2, column 18 of the query: the query ends too early, behind "where"')).toEqual({
    line: 2,
    column: 18,
  })
  expect(spotOf('there is no column "nope" here', 'LINE 1: select  nope from t\n                ^')).toEqual({
    line: 1,
    column: 9,
  })
  expect(spotOf('there is not enough memory')).toBeUndefined()
})

test('a place is found in the text, also if that is shorter now', () => {
  const text = 'select a\n from t'
  expect(text.slice(offsetOf(text, { line: 2, column: 7 }))).toBe('t')
  expect(offsetOf(text, { line: 9, column: 99 })).toBe(text.length)
})

test('a table is quoted where its name needs it', () => {
  expect(tableOf(6, 'sales')).toBe('run6.sales')
  expect(tableOf(6, 'a "b" C')).toBe('run6."a ""b"" C"')
})

test('a row is told by its cells, but not by those that are cut or have many values', () => {
  const column = (name: string, type = 'VARCHAR') => ({ name, type, text: false })
  const page = {
    columns: [
      column('a"b'),
      column('price', 'DECIMAL(18,2)'),
      column('none'),
      column('long'),
      column('list', 'INTEGER[]'),
    ],
    rows: [["O'Hara", '1.50', null, 'xyz', '[1]']],
    cut: [{ row: 0, column: 3 }],
  } as unknown as Page
  expect(conditionOf(page, 0)).toBe(`"a""b" = 'O''Hara' AND "price" = '1.50' AND "none" IS NULL`)
  expect(conditionOf({ ...page, rows: [] }, 0)).toBeUndefined()
  const wide = { ...page, columns: [column('a'), column('b')], rows: [['x'.repeat(3000), 'y'.repeat(3000)]], cut: [] }
  expect(conditionOf(wide, 0)).toBe(`"a" = '${'x'.repeat(3000)}'`)
})
