// Places in the text of a query, and texts for queries.
import type { Page } from '../api/schema'

export interface Spot {
  line: number
  column: number
}

/** spotOf finds the place that the server says an error of a query has. */
export function spotOf(detail: string, evidence = ''): Spot | undefined {
  const said = /\bline (\d+), column (\d+) of the query\b/.exec(detail)
  if (said) return { line: Number(said[1]), column: Number(said[2]) }
  // The engine shows the line with a caret below it.
  const shown = /^LINE (\d+): (.*)\n( *)\^/m.exec(evidence)
  if (!shown) return undefined
  const before = `LINE ${shown[1]}: `.length
  if ((shown[2] ?? '').startsWith('...')) return { line: Number(shown[1]), column: 1 } // it is cut in front
  return { line: Number(shown[1]), column: Math.max(1, (shown[3] ?? '').length - before + 1) }
}

/** offsetOf is where a place is in a text. */
export function offsetOf(text: string, spot: Spot): number {
  const lines = text.split('\n')
  const at = Math.min(spot.line, lines.length) - 1
  const before = lines.slice(0, at).reduce((n, l) => n + l.length + 1, 0)
  return before + Math.min(spot.column - 1, (lines[at] ?? '').length)
}

/** tableOf writes a table of a run as a query names it. */
export function tableOf(run: number, table: string): string {
  return `run${run}.${/^[a-z_][a-z0-9_]*$/.test(table) ? table : `"${table.replaceAll('"', '""')}"`}`
}

/** conditionOf is true for a row that a page shows, and for those that are equal to it; undefined if nothing says which. */
export function conditionOf(page: Page, i: number): string | undefined {
  const cut = new Set((page.cut ?? []).filter((c) => c.row === i).map((c) => c.column))
  const cells = (page.rows?.[i] ?? []) as (string | null)[]
  const said = (page.columns ?? []).flatMap(({ name, type }, j) => {
    const cell = cells[j]
    if (cut.has(j) || cell === undefined || /[[(]|BLOB|MAP|STRUCT/.test(type.replace(/^DECIMAL\(.*\)$/, ''))) return []
    const column = `"${name.replaceAll('"', '""')}"`
    return [cell === null ? `${column} IS NULL` : `${column} = '${cell.replaceAll("'", "''")}'`]
  })
  const most = 4000 // of characters, as the server takes
  let text = ''
  for (const one of said) {
    const longer = text ? `${text} AND ${one}` : one
    if (longer.length > most) break
    text = longer
  }
  return text || undefined
}
