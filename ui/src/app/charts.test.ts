import { expect, test } from 'vitest'
import type { Samples } from '../api/schema'
import { chartsOfBatches, chartsOfWorkers, top } from './charts'
import { cost, dollars, workerTime } from './format'
import type { Bar } from './timeline'

const zero = Date.parse('2026-03-01T06:00:00Z')
const bar = (start: number, end: number, more: Partial<Bar> = {}): Bar => ({
  ...{ node: 'n', batch: 0, batches: 1, status: 'succeeded', worker: 'w/1/2', attempts: 1, longest: end - start },
  ...{ start: zero + start, end: zero + end, busy: end - start, rows: 0, ...more },
})

test('batches and rows are spread over the time that they took', () => {
  const bars = [bar(0, 2000, { rows: 100 }), bar(1000, 4000, { rows: 300 }), bar(9000, 9000, { rows: 5 })]
  const [running, rows] = chartsOfBatches(bars, zero, zero + 10_000, 10)
  expect(running?.times.slice(0, 2)).toEqual([zero, zero + 1000])
  expect(running?.series[0]?.values.slice(0, 6)).toEqual([1, 2, 1, 1, 0, 0])
  expect(rows?.series[0]?.values.slice(0, 5)).toEqual([50, 150, 100, 100, 0])
  expect(rows?.series[0]?.values[9]).toBeCloseTo(5)
  // What is outside of the stretch is not seen, and a part of what goes over its end.
  const [part] = chartsOfBatches(bars, zero + 1500, zero + 2500, 2)
  expect(part?.series[0]?.values, 'the last one lasts until the end').toEqual([2, 1, 1])
  expect(part?.times).toEqual([zero + 1500, zero + 2000, zero + 2500])
  expect(part?.rows().map((r) => r.values[0])).toEqual(['2', '1'])
  expect(chartsOfBatches(bars, zero, zero, 10)).toEqual([])
})

test('neighbouring batches together count as many as were at work', () => {
  const many = bar(0, 10_000, { batches: 40, busy: 30_000, rows: 1000 })
  const [running, rows] = chartsOfBatches([many], zero, zero + 20_000, 2)
  expect(running?.series[0]?.values).toEqual([3, 0, 0])
  expect(rows?.series[0]?.values).toEqual([100, 0, 0])
})

const worker = (name: string, at: number[], more = {}) => {
  const all = (n: number) => at.map(() => n)
  return {
    ...{ worker: name, at_ms: at, took_ms: all(10_000), cpu_ms: all(12_000), children_cpu_ms: all(3000) },
    ...{ cores: all(2), resident_bytes: all(1 << 20), children_resident_bytes: all(1 << 20) },
    ...{ memory_limit_bytes: all(1 << 30), disk_free_bytes: all(5), disk_total_bytes: all(9) },
    ...{ read_bytes: all(1 << 20), written_bytes: all(0), ...more },
  }
}

test('workers have a line each, over the times of all', () => {
  const s: Samples = {
    ...{ from: '2026-03-01T06:00:00Z', to: '2026-03-01T06:01:00Z' },
    workers: [worker('a/1/2', [10_000, 20_000]), worker('b/1/2', [15_000])],
  }
  const charts = chartsOfWorkers(s, (w) => w.slice(0, 1))
  expect(charts.map((c) => c.title)).toEqual([
    'Processors in use, of 2',
    'Memory, of 1.0 GiB',
    'Free on the disk',
    'Read from and written to disks, a second',
  ])
  const [processors, memory, , traffic] = charts
  expect(processors?.times.map((t) => t - zero)).toEqual([-1, 0, 4999, 5000, 10_000, 15_000, 20_000])
  expect(processors?.series).toEqual([
    { name: 'a', values: [null, 1.5, undefined, undefined, 1.5, undefined, 1.5] },
    { name: 'b', values: [undefined, undefined, null, 1.5, undefined, 1.5, undefined] },
  ])
  expect(memory?.rows(), 'only what was told').toEqual([
    { time: zero + 10_000, values: ['2.0 MiB', ''] },
    { time: zero + 15_000, values: ['', '2.0 MiB'] },
    { time: zero + 20_000, values: ['2.0 MiB', ''] },
  ])
  expect(traffic?.rows()[1]?.values[1]).toBe('102 KiB')
  expect(chartsOfWorkers({ ...s, workers: [] }, String)).toEqual([])
  const other = chartsOfWorkers({ ...s, workers: [...(s.workers ?? []), worker('c', [1], { cores: [8] })] }, String)
  expect(other[0]?.title, 'of how many is not the same for all').toBe('Processors in use')
})

test('a worker that did not work on runs for a while has no line then', () => {
  const s: Samples = { from: '2026-03-01T06:00:00Z', to: '', workers: [worker('a', [10_000, 50_000])] }
  const [processors] = chartsOfWorkers(s, String)
  expect(processors?.times.map((t) => t - zero)).toEqual([-1, 0, 10_000, 39_999, 40_000, 50_000])
  expect(processors?.series[0]?.values).toEqual([null, 1.5, 1.5, null, 1.5, 1.5])
})

test('samples of many workers share times', () => {
  const workers = Array.from({ length: 200 }, (_, w) =>
    worker(
      `${w}`,
      Array.from({ length: 360 }, (_, i) => 10_000 * (i + 1) + w),
    ),
  )
  const [processors] = chartsOfWorkers({ from: '2026-03-01T06:00:00Z', to: '', workers }, String)
  expect(processors?.times.length).toBeLessThan(1100)
  expect(processors?.rows()[0]?.values).toHaveLength(200)
  expect(processors?.rows()[0]?.values[199]).toBe('1.5')
})

test('the top of a scale is round and above all', () => {
  expect([top([1.5], false), top([7], false), top([1234, undefined], false), top([0], false), top([], true)]).toEqual([
    2, 8, 2000, 1, 1,
  ])
  expect(top([700 << 20], true)).toBe(1 << 30)
  expect(top([100], false)).toBe(100)
})

test('cost is said in seconds or hours of a worker', () => {
  expect([0, 400, 1000, 34_000, 3_599_000, 4_320_000, 360_000_000].map(workerTime)).toEqual([
    '0 worker-seconds',
    '0.4 worker-seconds',
    '1.0 worker-seconds',
    '34 worker-seconds',
    '3,599 worker-seconds',
    '1.2 worker-hours',
    '100 worker-hours',
  ])
  expect(cost({ worked_ms: 30_000, lost_ms: 10_000 })).toBe('40 worker-seconds, 25 % lost')
  expect(cost({ worked_ms: 30_000, lost_ms: 0 })).toBe('30 worker-seconds')
  expect(cost({ worked_ms: 30_000, lost_ms: 10_000, usd: 14.005 })).toBe('40 worker-seconds, 25 % lost, $14.01')
  expect(cost({ worked_ms: 1000, lost_ms: 0, usd: 0.000_181, usd_partial: true })).toBe(
    '1.0 worker-seconds, ≥ $0.00018',
  )
  expect([0, 0.000_003, 0.0144, 0.1].map(dollars)).toEqual(['$0.00', '$0.000003', '$0.014', '$0.10'])
})
