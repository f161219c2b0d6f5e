import { expect, test } from 'vitest'
import { keep } from './held.svelte'

const key = (row: { id: string }) => row.id

test('rows that are shown stay in their order, with what is known of them now', () => {
  const shown = [
    { id: 'b', n: 1 },
    { id: 'a', n: 1 },
  ]
  const now = [
    { id: 'c', n: 2 },
    { id: 'a', n: 2 },
  ]
  expect(keep(shown, now, key)).toEqual({
    rows: [
      { id: 'b', n: 1 },
      { id: 'a', n: 2 },
    ],
    more: 1,
  })
})
