// Figures over time: of batches, spread over the time that they took, and of workers, as they told them.
import type { Samples } from '../api/schema'
import { bytes, count } from './format'
import type { Bar } from './timeline'

/** Series is a line: a value for each time of its chart; undefined: none is known then, and the line goes on. */
export interface Series {
  name: string
  values: (number | undefined)[]
}

/** Chart has its lines over the same times, milliseconds since 1970. */
export interface Chart {
  id: string
  title: string
  /** what: what a value is, for who reads the table. */
  what: string
  times: number[]
  series: Series[]
  say: (value: number) => string
  /** steps: a value is of the time from its own to the next one. */
  steps: boolean
}

const rate = (n: number) => (n >= 100 || n === 0 ? count(n) : n.toFixed(n < 10 ? 1 : 0))
const few = (n: number) => n.toFixed(n < 10 ? 1 : 0)

/** chartsOfBatches are what was done over a stretch of time, as means of so many parts of it. */
export function chartsOfBatches(bars: Bar[], from: number, to: number, parts: number): Chart[] {
  const size = (to - from) / parts
  if (!(size > 0)) return []
  const running = new Array<number>(parts).fill(0)
  const rows = new Array<number>(parts).fill(0)
  for (const b of bars) {
    const took = Math.max(b.end - b.start, 1)
    const end = b.start + took
    for (let i = Math.max(0, Math.floor((b.start - from) / size)); i < parts; i++) {
      const shared = Math.min(end, from + (i + 1) * size) - Math.max(b.start, from + i * size)
      if (shared <= 0) break
      running[i] = (running[i] ?? 0) + (b.busy / took) * (shared / size)
      rows[i] = (rows[i] ?? 0) + (b.rows / took) * (shared / size) * 1000
    }
  }
  const times = running.map((_, i) => from + i * size)
  const chart = (id: string, title: string, what: string, values: number[], say: (n: number) => string): Chart => ({
    ...{ id, title, what, times, say, steps: true, series: [{ name: 'all', values }] },
  })
  return [
    chart('batches', 'Batches at work', 'mean number of batches at work', running, few),
    chart('rows', 'Rows a second', 'rows written a second, spread over the time of their batch', rows, (n) => rate(n)),
  ]
}

/** chartsOfWorkers are what workers used of their machines, one line a worker. */
export function chartsOfWorkers(s: Samples, nameOf: (worker: string) => string): Chart[] {
  const began = Date.parse(s.from)
  const workers = s.workers ?? []
  const times = [...new Set(workers.flatMap((w) => (w.at_ms ?? []).map((at) => began + at)))].sort((a, b) => a - b)
  if (!times.length) return []
  const places = new Map(times.map((t, i) => [t, i]))
  const lines = (of: (w: Samples['workers'] extends (infer W)[] | null ? W : never, i: number) => number): Series[] =>
    workers.map((w) => {
      const values = new Array<number | undefined>(times.length).fill(undefined)
      w.at_ms?.forEach((at, i) => {
        values[places.get(began + at) ?? 0] = of(w, i)
      })
      return { name: nameOf(w.worker), values }
    })
  const n = (list: number[] | null | undefined, i: number) => list?.[i] ?? 0
  const share = (a: number, ms: number) => (ms > 0 ? a / ms : 0)
  const chart = (id: string, title: string, what: string, series: Series[], say: (n: number) => string): Chart => ({
    ...{ id, title, what, times, series, say, steps: false },
  })
  return [
    chart(
      'processors',
      `Processors in use${most(workers.map((w) => w.cores))}`,
      'processors in use by the worker and what it started',
      lines((w, i) => share(n(w.cpu_ms, i) + n(w.children_cpu_ms, i), n(w.took_ms, i))),
      few,
    ),
    chart(
      'memory',
      `Memory${most(
        workers.map((w) => w.memory_limit_bytes),
        bytes,
      )}`,
      'memory of the worker and what it started',
      lines((w, i) => n(w.resident_bytes, i) + n(w.children_resident_bytes, i)),
      whole,
    ),
    chart(
      'disk',
      'Free on the disk',
      'free space of the disk of its directory',
      lines((w, i) => n(w.disk_free_bytes, i)),
      whole,
    ),
    chart(
      'traffic',
      'Read from and written to disks, a second',
      'bytes a second from and to disks',
      lines((w, i) => share((n(w.read_bytes, i) + n(w.written_bytes, i)) * 1000, n(w.took_ms, i))),
      whole,
    ),
  ]
}

const whole = (n: number) => bytes(Math.round(n))

/** most says how much of a thing the workers may use, if it is the same for all. */
function most(lists: (number[] | null | undefined)[], say: (n: number) => string = count): string {
  const all = new Set(lists.map((l) => l?.at(-1) ?? 0))
  const [one] = all
  return all.size === 1 && one ? `, of ${say(one)}` : ''
}

/** rowsOf are the lines of a chart's table: a time with a value of each series. */
export function rowsOf(c: Chart, from: number, to: number): { time: number; values: string[] }[] {
  return c.times.flatMap((time, i) => {
    if (time < from || time > to) return []
    return [{ time, values: c.series.map((s) => (s.values[i] === undefined ? '' : c.say(s.values[i]))) }]
  })
}

/** top is a round number that no value is above, and a half of which is written well. */
export function top(values: Iterable<number | undefined>, binary: boolean): number {
  let max = 0
  for (const v of values) if (v !== undefined && v > max) max = v
  if (!(max > 0)) return 1
  const base = binary ? 1024 : 10
  const unit = base ** Math.floor(Math.log(max) / Math.log(base))
  const steps = binary ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 4, 6, 8, 10]
  return unit * (steps.find((n) => n * unit >= max) ?? base)
}
