// What is said of a difference between two tables.
import { plural } from './format'
import type { Diff } from './results'

export interface Share {
  kind: 'a' | 'c' | 'same' | 'b'
  mark: string
  word: string
  rows: number
}

/** shares are the kinds of rows of both tables, in the order in which they are drawn. */
export function shares(it: Diff): Share[] {
  return [
    { kind: 'a', mark: '−', word: `only in run ${it.run_a}`, rows: it.removed },
    { kind: 'c', mark: '≠', word: 'changed', rows: it.changed },
    { kind: 'same', mark: '=', word: 'same', rows: Math.max(0, it.rows_a - it.removed - it.changed) },
    { kind: 'b', mark: '+', word: `only in run ${it.run_b}`, rows: it.added },
  ]
}

/** sentenceOf says the difference as one would to a colleague. */
export function sentenceOf(it: Diff): string {
  if (it.equal)
    return it.rows_a ? `Nothing: all ${plural(it.rows_a, 'row')} are the same.` : 'Nothing: both have no rows.'
  const said: string[] = []
  const columns = it.schema?.length ?? 0
  if (columns) said.push(plural(columns, 'column is another one', 'columns are others'))
  if (it.changed) said.push(`${plural(it.changed, 'row has', 'rows have')} changed`)
  if (it.added) said.push(`${plural(it.added, 'row has', 'rows have')} come`)
  if (it.removed) said.push(`${plural(it.removed, 'row has', 'rows have')} gone`)
  const same = shares(it).find((s) => s.kind === 'same')?.rows ?? 0
  const rest = same ? plural(same, 'is the same', 'are the same') : 'no row is the same'
  return `${join(said)}; ${rest}.`
}

function join(words: string[]): string {
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : (words[0] ?? '')
}
