import { expect, test } from 'vitest'
import type { HistoryTimeline } from '../api/schema'
import { at, type Bar, barsOf, groupsOf, ticks, workerName, worst } from './timeline'

const began = '2026-11-28T01:00:00.000Z'
const zero = Date.parse(began)
const summary = {
  ...{ statuses: {}, ranges: {}, elapsed_ms: 0, mean_ms: 0, deviation_ms: 0, variation: 0, median_ms: 0 },
  slowest: [],
}
const node: HistoryTimeline = {
  ...{ node: 'score', status: 'running', total: 5, from: 10, to: 15, began, summary },
  batches: {
    ...{ statuses: ['succeeded', 'claimed', 'pending'], workers: ['vm/1/9', 'vm/2/9'], rows: [7, 0, 0, 0, 0] },
    ...{ status: [0, 0, 0, 1, 2], worker: [0, 0, 1, 1, -1], attempts: [1, 2, 1, 1, 0] },
    ...{ start_ms: [0, 50, 0, 120, -1], end_ms: [100, 150, 90, -1, -1] },
  },
}

test('a bar is a batch that has begun, and one under way lasts until now', () => {
  const bars = barsOf(node, zero + 500)
  expect(bars.map((b) => [b.batch, b.start - zero, b.end - zero, b.status])).toEqual([
    [10, 0, 100, 'succeeded'],
    [11, 50, 150, 'succeeded'],
    [12, 0, 90, 'succeeded'],
    [13, 120, 500, 'claimed'],
  ])
})

test('what overlaps is in lanes of its own, and gaps are idle', () => {
  const groups = groupsOf(barsOf(node, zero + 500), 'worker')
  expect(groups.map((g) => [g.name, g.lanes.length, g.batches, g.busy, g.idle])).toEqual([
    ['vm · 1', 2, 2, 200, 100],
    ['vm · 2', 1, 2, 470, 30],
  ])
  expect(groupsOf(barsOf(node, zero + 500), 'node')).toHaveLength(1)
})

test('spans have the status that matters, and no worker', () => {
  const span = { from: 0, batches: 32, statuses: { succeeded: 31, failed: 1 }, attempts: 3 }
  const many = {
    ...node,
    batches: undefined,
    spans: [{ ...span, start_ms: 5, end_ms: 40, longest_ms: 9, took_ms: 99, rows: 640 }],
  }
  const [bar] = barsOf(many, zero)
  expect(bar).toMatchObject({ batches: 32, status: 'failed', longest: 9, busy: 99, rows: 640, end: zero + 40 })
  expect(groupsOf([bar as Bar], 'worker')[0]?.name).toBe('score, many batches')
  expect(worst({ succeeded: 2 })).toBe('succeeded')
  expect(worst({})).toBe('pending')
})

test('the bar below the pointer is found, and one beside it', () => {
  const [first] = groupsOf(barsOf(node, zero + 500), 'worker')
  const lane = first?.lanes[0] ?? { bars: [] }
  expect(at(lane, zero + 30, 0)?.batch).toBe(10)
  expect(at(lane, zero + 105, 2)).toBeUndefined()
  expect(at(lane, zero + 105, 10)?.batch).toBe(10)
})

test('ticks are few and round', () => {
  expect(ticks(zero + 1, zero + 10_001, 6).map((t) => t - zero)).toEqual([2000, 4000, 6000, 8000, 10_000])
  expect(ticks(zero, zero, 6).length).toBeLessThan(2)
  expect(workerName('vm/2/9')).toBe('vm · 2')
})
