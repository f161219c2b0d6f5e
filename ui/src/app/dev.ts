// What is shown of a script that is developed: which of its runs, and what a run would do.
import type { HistoryRun, RunPlanned } from '../api/schema'
import { plural } from './format'

/** good returns the latest run whose tables are whole; else the latest, which may have some; undefined: there is none. */
export function good(runs: HistoryRun[]): HistoryRun | undefined {
  return runs.find((r) => r.status === 'complete') ?? runs[0]
}

/** planned says in a sentence what a run would do. */
export function planned(plan: RunPlanned): string {
  const nodes = plan.nodes ?? []
  const computed = nodes.filter((n) => !n.reused_from).length
  if (!computed) return 'Nothing has changed: all nodes are taken over from earlier runs.'
  const rest = nodes.length - computed
  const over = rest ? `, and ${plural(rest, 'is', 'are')} taken over from earlier runs` : ''
  return `${plural(computed, 'node is', 'nodes are')} computed${over}.`
}

/** topicOf is the topic of the stream that tells when files of a script change. */
export function topicOf(workspace: string, script: string): string {
  return `${workspace}/script:${encodeURIComponent(script)}`
}
