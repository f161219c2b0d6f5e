// When batches were worked on, laid out for drawing: a lane is one thing after the other.
import type { HistoryTimeline } from '../api/schema'

/** Bar is a batch, or neighbouring ones of a node that has many. Times are milliseconds since 1970. */
export interface Bar {
  node: string
  batch: number
  /** batches: so many, from `batch` on. */
  batches: number
  status: string
  worker: string
  attempts: number
  start: number
  end: number
  /** longest: of one batch. */
  longest: number
  /** busy: milliseconds of all its batches. */
  busy: number
  /** rows: that were written. */
  rows: number
}

export interface Lane {
  bars: Bar[]
}

export interface Group {
  name: string
  lanes: Lane[]
  batches: number
  /** busy, idle: milliseconds of all its lanes between its first start and its last end. */
  busy: number
  idle: number
}

/** barsOf lists what has begun of a node; what is under way lasts until now. */
export function barsOf(t: HistoryTimeline, now: number): Bar[] {
  const began = t.began ? Date.parse(t.began) : 0
  const end = (ms: number) => (ms < 0 ? Math.max(now, began) : began + ms)
  const out: Bar[] = []
  const b = t.batches
  b?.start_ms?.forEach((start, i) => {
    if (start < 0) return
    const at = began + start
    const to = Math.max(at, end(b.end_ms?.[i] ?? -1))
    out.push({
      ...{ node: t.node, batch: t.from + i, batches: 1, start: at, end: to, longest: to - at },
      ...{ busy: to - at, rows: b.rows?.[i] ?? 0 },
      status: b.statuses?.[b.status?.[i] ?? -1] ?? 'pending',
      worker: b.workers?.[b.worker?.[i] ?? -1] ?? '',
      attempts: b.attempts?.[i] ?? 1,
    })
  })
  for (const s of t.spans ?? []) {
    if (s.start_ms < 0) continue
    const at = began + s.start_ms
    out.push({
      ...{ node: t.node, batch: s.from, batches: s.batches, attempts: s.attempts, longest: s.longest_ms },
      ...{ status: worst(s.statuses), worker: '', start: at, end: Math.max(at, end(s.end_ms)) },
      ...{ busy: s.took_ms, rows: s.rows },
    })
  }
  return out
}

/** worst is the status of a span that somebody has to know of. */
export function worst(statuses: Record<string, number>): string {
  const order = ['failed', 'claimed', 'pending', 'succeeded']
  return order.find((s) => statuses[s]) ?? Object.keys(statuses)[0] ?? 'pending'
}

/** workerName is the host and the process of a worker. */
export function workerName(worker: string): string {
  const [host, process] = worker.split('/')
  return worker ? [host, process].filter(Boolean).join(' · ') : 'worker not given'
}

/** groupsOf lays bars out by worker or by node, in the order in which they first appear. */
export function groupsOf(bars: Bar[], by: 'worker' | 'node'): Group[] {
  const all = new Map<string, Bar[]>()
  for (const bar of bars) {
    const name = by === 'node' ? bar.node : bar.worker ? workerName(bar.worker) : `${bar.node}, many batches`
    const of = all.get(name)
    if (of) of.push(bar)
    else all.set(name, [bar])
  }
  const groups = [...all].map(([name, of]) => group(name, of))
  return by === 'node' ? groups : groups.sort((a, b) => first(a) - first(b))
}

function first(g: Group): number {
  return g.lanes[0]?.bars[0]?.start ?? 0
}

function group(name: string, bars: Bar[]): Group {
  const lanes: Lane[] = []
  const ends: number[] = []
  let batches = 0
  let busy = 0
  const sorted = bars.toSorted((a, b) => a.start - b.start || a.end - b.end || a.batch - b.batch)
  for (const bar of sorted) {
    batches += bar.batches
    busy += bar.end - bar.start
    let i = ends.findIndex((end) => end <= bar.start)
    if (i < 0) i = lanes.push({ bars: [] }) - 1
    lanes[i]?.bars.push(bar)
    ends[i] = bar.end
  }
  const from = sorted[0]?.start ?? 0
  const to = Math.max(from, ...ends)
  return { name, lanes, batches, busy, idle: Math.max(0, lanes.length * (to - from) - busy) }
}

/** at finds the bar of a lane at a time, or one at most so far from it. */
export function at(lane: Lane, time: number, near: number): Bar | undefined {
  let low = 0
  let high = lane.bars.length
  while (low < high) {
    const mid = (low + high) >> 1
    if ((lane.bars[mid] as Bar).start <= time) low = mid + 1
    else high = mid
  }
  const [before, after] = [lane.bars[low - 1], lane.bars[low]]
  const far = (b: Bar | undefined) => (b ? Math.max(0, b.start - time, time - b.end) : Infinity)
  const found = far(before) <= far(after) ? before : after
  return far(found) <= near ? found : undefined
}

/** nearest finds the bar of a lane whose middle is nearest to a time. */
export function nearest(lane: Lane | undefined, time: number): Bar | undefined {
  return lane && at(lane, time, Infinity)
}

/** ticks are round times that divide a stretch of time into at most so many parts. */
export function ticks(from: number, to: number, most: number): number[] {
  const sizes = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5,
  ]
  const days = [72e5, 216e5, 432e5, 864e5, 1728e5, 6048e5]
  const size = [...sizes, ...days].find((s) => (to - from) / s <= most) ?? (to - from) / most
  const out: number[] = []
  for (let t = Math.ceil(from / size) * size; t <= to && size > 0; t += size) out.push(t)
  return out
}
