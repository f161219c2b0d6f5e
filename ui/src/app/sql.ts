// Places in the text of a query.

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
