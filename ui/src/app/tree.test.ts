import { expect, test } from 'vitest'
import { exact, type Tree } from './results'
import { above, linesOf, placeOf, roleOf } from './tree'

const tree: Tree = {
  target: 'table sums',
  run: 6,
  matches: 2,
  roots: [0],
  rows: [
    {
      id: 0,
      table: 'sums',
      row: 1,
      from: [
        { role: 'group', table: 'sales', count: 40, rows: [1, 2] },
        { role: 'row', table: 'rates', count: 1, rows: [3] },
      ],
    },
    { id: 1, table: 'sales', row: 7, from: [{ role: 'row', file: 'in/a.csv', count: 1, rows: [4] }] },
    { id: 2, table: 'sales', row: 9 },
    { id: 3, table: 'rates', row: 1 },
    { id: 4, file: 'in/a.csv', line: 8, text: '7;x' },
  ],
}

test('all lines are those of rows, and of many that one is made of', () => {
  const said = linesOf(tree, new Set(), true).map(
    (l) => `${l.level} ${l.row ? placeOf(l.row) : `${l.origin?.count} rows`}`,
  )
  expect(said).toEqual([
    '1 sums, row 1',
    '2 40 rows',
    '3 sales, row 7',
    '4 in/a.csv:8',
    '3 sales, row 9',
    '2 rates, row 1',
  ])
})

test('a folded line hides those below it', () => {
  const all = linesOf(tree, new Set(), true)
  const many = all[1]
  expect(many?.open).toBe(true)
  const lines = linesOf(tree, new Set([many?.key as string]), true)
  expect(lines.map((l) => l.row?.id)).toEqual([0, undefined, 3])
  expect(lines[1]?.open).toBe(false)
  expect(above(many?.key as string)).toBe(all[0]?.key)
  expect(linesOf(tree, new Set(), false)).toHaveLength(1)
})

test('a tree that names itself or what is not there ends', () => {
  const odd: Tree = { ...tree, roots: [0, 9], rows: [{ id: 0, from: [{ role: 'row', count: 1, rows: [0] }] }] }
  expect(linesOf(odd, new Set(), true).length).toBeLessThan(10)
  expect(linesOf({ ...tree, roots: null, rows: null }, new Set(), true)).toEqual([])
})

test('an unknown role is said as it is', () => {
  expect(roleOf('left')).toBe('left of the join')
  expect(roleOf('new')).toBe('new')
})

test('numbers are read without rounding', () => {
  expect(exact('{"a": 12.50, "b": 9007199254740993, "c": 7, "d": "x \\" 1.50"}')).toEqual({
    a: '12.50',
    b: '9007199254740993',
    c: 7,
    d: 'x " 1.50',
  })
})
