// Orders to runs, to one or to many: what each of them means, would do, and has become.
import type { BulkFilter, BulkRun, OrdersTouched } from '../api/schema'
import { bytes, plural } from './format'
import { command } from './shell'

export type Kind = 'stop' | 'pause' | 'resume' | 'retry' | 'invalidate' | 'drop'

/** words name the orders, and say what they do. */
export const words: Record<Kind, { name: string; what: string }> = {
  stop: {
    name: 'Stop',
    what: 'What is under way ends and is thrown away. Finished batches stay; the run can go on later.',
  },
  pause: {
    name: 'Pause',
    what: 'Batches that are under way end well; nothing more begins until somebody resumes the run.',
  },
  resume: {
    name: 'Resume',
    what: 'The run goes on where it was, with the script and the files that it was begun with. What is done stays.',
  },
  retry: {
    name: 'Retry',
    what: 'What has failed, or is missing, is done again with the script and the files as they are now: if those have changed, a new run begins. What is done stays.',
  },
  invalidate: {
    name: 'Invalidate',
    what: 'Nobody may read these tables any more. Files that were written stay.',
  },
  drop: { name: 'Drop', what: 'Nobody reads, continues or lists these runs any more. That cannot be undone.' },
}

/** Target is a workspace with runs that are named, or that a filter selects. */
export interface Target {
  workspace: string
  runs?: number[]
  filter?: BulkFilter
}

/** Line is a run that an order is for. */
export type Line = BulkRun & { workspace: string }

export const keyOf = (l: { workspace: string; run: number }): string => `${l.workspace}/${l.run}`

/** Effect is what an order would do to a run. */
export interface Effect {
  text: string
  rows: number
  ms: number
  touches: OrdersTouched[]
  /** none: the order changes nothing. */
  none: boolean
}

/** effectOf says what a dry run says of a run; undefined: it says nothing of it. */
export function effectOf(it: BulkRun): Effect | undefined {
  const { planned, invalidated, dropped, would } = it.would ?? {}
  const said = (text: string, more: Partial<Effect> = {}): Effect => ({
    ...{ rows: 0, ms: 0, touches: [], none: false },
    ...{ text, ...more },
  })
  const sum = (all: { rows?: number; elapsed_ns?: number }[]) => ({
    rows: all.reduce((n, t) => n + (t.rows ?? 0), 0),
    ms: all.reduce((n, t) => n + (t.elapsed_ns ?? 0), 0) / 1e6,
  })
  if (dropped)
    return said(`${plural(dropped.nodes?.length ?? 0, 'node')}, ${bytes(dropped.bytes)}`, {
      touches: dropped.made_from_it ?? [],
    })
  if (planned?.new_run) {
    const changed = (planned.changed ?? []).map((c) => [c.what, c.name].filter(Boolean).join(' '))
    const nodes = (planned.nodes ?? []).filter((n) => n.computed)
    return said(
      `a new run, because of ${changed.join(', ') || 'a change'}; computes ${nodes.map((n) => n.node).join(', ') || 'nothing'}`,
      sum(nodes),
    )
  }
  if (planned) {
    const tasks = planned.tasks ?? []
    return said(tasks.map((t) => `${t.node} (${t.count} of ${t.batches_total})`).join(', '), sum(tasks))
  }
  if (invalidated)
    return said(
      `${plural(invalidated.nodes?.length ?? 0, 'node')}, ${plural(invalidated.files?.length ?? 0, 'file')}`,
      {
        ...sum(invalidated.tables ?? []),
        touches: invalidated.made_from_it ?? [],
      },
    )
  if (would) {
    if (would.before === would.status) return said(`changes nothing: it is ${would.before}`, { none: true })
    const left = would.left ?? []
    return said(
      `${plural(would.in_flight, 'batch', 'batches')} under way; ${left.length ? `${left.map((n) => n.node).join(', ')} not done` : 'all nodes are done'}`,
      sum(would.tasks ?? []),
    )
  }
  return undefined
}

/** takes reports whether an order to a run can be given. */
export function takes(it: BulkRun): boolean {
  const effect = effectOf(it)
  return !it.problem && effect !== undefined && !effect.none
}

/** touched names the runs that others have made from a run. */
export function touched(touches: OrdersTouched[]): string {
  const runs = [...new Set(touches.map((t) => t.run))]
  if (!runs.length) return ''
  const most = 5
  const named = runs.slice(0, most).map((r) => `#${r}`)
  return `${named.join(', ')}${runs.length > most ? ` and ${runs.length - most} more` : ''}`
}

/** commandsOf writes what does the same from a terminal. */
export function commandsOf(kind: Kind, lines: Line[], reason: string): string[] {
  const why = reason || (kind === 'invalidate' || kind === 'drop' ? 'TEXT' : '')
  const may = ['stop', 'pause', 'invalidate', 'drop'].includes(kind) && why
  const more = (workspace: string) => [...(may ? ['--reason', why] : []), '--workspace', workspace]
  if (kind !== 'drop') return lines.map((l) => command('thalweg', kind, l.run, ...more(l.workspace)))
  const workspaces = [...new Set(lines.map((l) => l.workspace))]
  return workspaces.map((w) =>
    command('thalweg', kind, ...lines.filter((l) => l.workspace === w).map((l) => l.run), ...more(w)),
  )
}

/** tokensOf are the tokens that bind an order to what was shown of each run. */
export function tokensOf(lines: Line[]): Record<string, string> {
  return Object.fromEntries(lines.flatMap((l) => (l.would?.token ? [[`${l.run}`, l.would.token]] : [])))
}

/** inParts shares lines among requests: each of one workspace, and of at most so many. */
export function inParts<T extends { workspace: string }>(lines: T[], most: number): T[][] {
  const out: T[][] = []
  for (const workspace of new Set(lines.map((l) => l.workspace))) {
    const of = lines.filter((l) => l.workspace === workspace)
    for (let i = 0; i < of.length; i += most) out.push(of.slice(i, i + most))
  }
  return out
}
