// How far a job is, in words: what was counted, and nothing else.
import type { ProgressProgress } from '../api/schema'
import { bytes, count } from './format'

/** phaseOf says what is done at the moment. */
export function phaseOf(p: ProgressProgress): string {
  return p.phase.charAt(0).toUpperCase() + p.phase.slice(1)
}

/** countedOf says how much of it is done; "" where nothing is counted. */
export function countedOf(p: ProgressProgress): string {
  const write = p.unit === 'bytes' ? bytes : count
  const list: string[] = []
  if (p.unit && p.of) list.push(`${write(p.done ?? 0)} of ${write(p.of)}${p.unit === 'bytes' ? '' : ` ${p.unit}`}`)
  if (p.bytes && p.unit !== 'bytes') list.push(bytes(p.bytes))
  return list.join(', ')
}
