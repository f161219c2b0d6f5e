// Figures over time: of batches, spread over the time that they took, and of workers, as they told them.
import type { Samples } from '../api/schema'
import { bytes, count } from './format'
import type { Bar } from './timeline'

/** Series is a line: a value for each time of its chart; null: none is known then; undefined: the line goes on. */
export interface Series {
  name: string
  values: (number | null | undefined)[]
}

/** Row is a line of a chart's table: a time with a value of each series. */
export interface Row {
  time: number
  values: string[]
}

/** Chart has its lines over the same times, milliseconds since 1970. A line is level between two times. */
export interface Chart {
  id: string
  title: string
  /** what: what a value is, for who reads the table. */
  what: string
  times: number[]
  series: Series[]
  /** rows are made when the table is looked at. */
  rows: () => Row[]
  say: (value: number) => string
  /** ahead: a value is of the time until the next one, and not since the one before. */
  ahead: boolean
}

const few = (n: number) => (n >= 100 ? count(n) : String(Number(n.toPrecision(2))))
const whole = (n: number) => bytes(Math.round(n))

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
  const chart = (id: string, title: string, what: string, values: number[]): Chart => ({
    ...{ id, title, what, times: [...times, to], say: few, ahead: true },
    series: [{ name: 'all', values: [...values, values.at(-1)] }],
    rows: () => times.map((time, i) => ({ time, values: [few(values[i] ?? 0)] })),
  })
  return [
    chart('batches', 'Batches at work', 'mean number of batches at work', running),
    chart('rows', 'Rows a second', 'rows written a second, spread over the time of their batch', rows),
  ]
}

type Worker = NonNullable<Samples['workers']>[number]

/** chartsOfWorkers are what workers used of their machines, one line a worker. */
export function chartsOfWorkers(s: Samples, nameOf: (worker: string) => string): Chart[] {
  const workers = s.workers ?? []
  const at = placed(workers, Date.parse(s.from))
  const told = [...new Set(workers.flatMap((w) => (w.at_ms ?? []).map(at)))].sort((a, b) => a - b)
  if (!told.length) return []
  const bounds = workers.map((w) => (w.at_ms ?? []).map((_, i) => begins(w, i).map(at)))
  const times = [...new Set([...told, ...bounds.flat(2)])].sort((a, b) => a - b)
  const places = new Map(times.map((t, i) => [t, i]))
  const n = (list: number[] | null | undefined, i: number) => list?.[i] ?? 0
  const share = (a: number, ms: number) => (ms > 0 ? a / ms : 0)
  const chart = (
    id: string,
    title: string,
    what: string,
    say: (n: number) => string,
    of: (w: Worker, i: number) => number,
  ): Chart => {
    const series = workers.map((w, line) => {
      const values = new Array<number | null | undefined>(times.length).fill(undefined)
      const put = (time: number, value: number | null) => {
        values[places.get(time) ?? 0] = value
      }
      w.at_ms?.forEach((ms, i) => {
        const [end, begin] = bounds[line]?.[i] ?? []
        if (end !== undefined) put(end, null)
        if (begin !== undefined) put(begin, of(w, i))
        put(at(ms), of(w, i))
      })
      return { name: nameOf(w.worker), values }
    })
    const rows = () => {
      const out = new Map(told.map((time) => [time, workers.map(() => '')]))
      workers.forEach((w, line) => {
        w.at_ms?.forEach((ms, i) => {
          const row = out.get(at(ms))
          if (row) row[line] = say(of(w, i))
        })
      })
      return [...out].map(([time, values]) => ({ time, values }))
    }
    return { id, title, what, times, series, say, rows, ahead: false }
  }
  return [
    chart(
      'processors',
      `Processors in use${most(workers.map((w) => w.cores))}`,
      'processors in use by the worker and what it started',
      few,
      (w, i) => share(n(w.cpu_ms, i) + n(w.children_cpu_ms, i), n(w.took_ms, i)),
    ),
    chart(
      'memory',
      `Memory${most(
        workers.map((w) => w.memory_limit_bytes),
        bytes,
      )}`,
      'memory of the worker and what it started',
      whole,
      (w, i) => n(w.resident_bytes, i) + n(w.children_resident_bytes, i),
    ),
    chart('disk', 'Free on the disk', 'free space of the disk of its directory', whole, (w, i) =>
      n(w.disk_free_bytes, i),
    ),
    chart('traffic', 'Read from and written to disks, a second', 'bytes a second from and to disks', whole, (w, i) =>
      share((n(w.read_bytes, i) + n(w.written_bytes, i)) * 1000, n(w.took_ms, i)),
    ),
  ]
}

const exactMost = 2000 // samples of which each has a time of its own

/** placed gives times of samples as instants: of many samples, as one of a thousand. */
function placed(workers: Worker[], began: number): (ms: number) => number {
  const total = workers.reduce((sum, w) => sum + (w.at_ms?.length ?? 0), 0)
  const last = workers.reduce((max, w) => Math.max(max, w.at_ms?.at(-1) ?? 0), 0)
  const step = total <= exactMost ? 1 : Math.max(1, Math.ceil(last / 1000))
  return (ms) => began + Math.round(ms / step) * step
}

const seamMS = 100 // between two samples of which one goes on from the other

/** begins are the times just before a sample begins, and when it does, where none was before it. */
function begins(w: Worker, i: number): number[] {
  const begin = (w.at_ms?.[i] ?? 0) - (w.took_ms?.[i] ?? 0)
  const before = i ? (w.at_ms?.[i - 1] ?? 0) : -Infinity
  return begin - before > seamMS ? [begin - 1, begin] : []
}

/** most says how much of a thing the workers may use, if it is the same for all. */
function most(lists: (number[] | null | undefined)[], say: (n: number) => string = count): string {
  const all = new Set(lists.map((l) => l?.at(-1) ?? 0))
  const [one] = all
  return all.size === 1 && one ? `, of ${say(one)}` : ''
}

/** top is a round number that no value is above, and a half of which is written well. */
export function top(values: Iterable<number | null | undefined>, binary: boolean): number {
  let max = 0
  for (const v of values) if ((v ?? 0) > max) max = v ?? 0
  if (!(max > 0)) return 1
  const base = binary ? 1024 : 10
  const unit = base ** Math.floor(Math.log(max) / Math.log(base))
  const steps = binary ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 4, 6, 8, 10]
  return unit * (steps.find((n) => n * unit >= max) ?? base)
}
