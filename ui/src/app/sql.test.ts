import { expect, test } from 'vitest'
import { offsetOf, spotOf, tableOf } from './sql'

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
