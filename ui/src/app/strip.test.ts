import { expect, test } from 'vitest'
import { strip } from './strip'

test('each batch has a cell while there is room', () => {
  const spans = ['succeeded', 'failed'].map((s, i) => ({ from: i, batches: 1, statuses: { [s]: 1 } }))
  expect(strip(spans, 3, 100).map((c) => c.status)).toEqual(['succeeded', 'failed', 'pending'])
})

test('many batches share cells, which show the worst', () => {
  const spans = [{ from: 0, batches: 32_000, statuses: { succeeded: 31_999, failed: 1 } }]
  const cells = strip(spans, 32_000, 100)
  expect(cells).toHaveLength(100)
  expect(cells.at(-1)?.to).toBe(31_999)
  expect(cells.every((c) => c.status === 'failed')).toBe(true)
  expect(strip([], 0, 100)).toEqual([])
})
