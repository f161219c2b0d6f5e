// A node's batches as one strip of cells: many batches share a cell, which shows the worst of them.

export interface Span {
  from: number
  batches: number
  statuses: Record<string, number>
}

const worst = [
  'failed',
  'lost',
  'claimed',
  'running',
  'waiting',
  'stopped',
  'paused',
  'invalidated',
  'pending',
  'succeeded',
]

export interface StripCell {
  from: number
  to: number
  status: string
  /** done is the share of batches that succeeded, 0 to 1. */
  done: number
}

/** strip shares batches among at most `most` cells. */
export function strip(spans: Span[], total: number, most: number): StripCell[] {
  const cells = Math.min(total, most)
  if (!cells) return []
  const out: StripCell[] = []
  const size = total / cells
  let at = 0
  for (let i = 0; i < cells; i++) {
    const from = Math.floor(i * size)
    const to = Math.floor((i + 1) * size) - 1
    const found: Record<string, number> = {}
    while (at < spans.length && (spans[at] as Span).from + (spans[at] as Span).batches <= from) at++
    let known = 0
    for (let k = at; k < spans.length && (spans[k] as Span).from <= to; k++) {
      const s = spans[k] as Span
      const share = (Math.min(to + 1, s.from + s.batches) - Math.max(from, s.from)) / s.batches
      for (const [status, n] of Object.entries(s.statuses)) {
        found[status] = (found[status] ?? 0) + n * share
        known += n * share
      }
    }
    const batches = to - from + 1
    if (known < batches) found.pending = (found.pending ?? 0) + batches - known
    const status = worst.find((w) => (found[w] ?? 0) > 0) ?? 'pending'
    out.push({ from, to, status, done: Math.min(1, (found.succeeded ?? 0) / batches) })
  }
  return out
}
