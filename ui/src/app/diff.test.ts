import { expect, test } from 'vitest'
import { sentenceOf, shares } from './diff'
import type { Diff } from './results'

const equal: Diff = {
  ...{ table: 't', run_a: 4, run_b: 6, equal: true, key: [], columns: [], schema: [], changed_in: [] },
  ...{ rows_a: 10, rows_b: 10, removed: 0, added: 0, changed: 0, repeated_keys_a: 0, repeated_keys_b: 0 },
  ...{ sample_removed: [], sample_added: [], sample_changed: [] },
}

test('what is the same is what is neither gone nor changed', () => {
  const it = { ...equal, equal: false, removed: 2, changed: 3, added: 1, rows_b: 9 }
  expect(shares(it).map((s) => s.rows)).toEqual([2, 3, 5, 1])
  expect(sentenceOf(it)).toBe('3 rows have changed, 1 row has come and 2 rows have gone; 5 are the same.')
})

test('a table may differ in columns only, and in nothing', () => {
  expect(sentenceOf(equal)).toBe('Nothing: all 10 rows are the same.')
  expect(sentenceOf({ ...equal, rows_a: 0, rows_b: 0 })).toBe('Nothing: both have no rows.')
  const it = { ...equal, equal: false, schema: [{ column: 'x', type_b: 'int' }] }
  expect(sentenceOf(it)).toBe('1 column is another one; 10 are the same.')
})

test('without any row in common it says so', () => {
  const it = { ...equal, equal: false, removed: 10, added: 10, schema: null }
  expect(sentenceOf(it)).toBe('10 rows have come and 10 rows have gone; no row is the same.')
})
