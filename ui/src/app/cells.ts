// How a cell is read: what nobody sees otherwise (outer blanks, line ends, invisible characters) is pointed out.

const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u00a0]/gu
const names: Record<string, string> = { '\n': '␤', '\r': '␍', '\t': '⇥', '\0': '␀', '\u00a0': '⍽' }

/** Piece is a part of a cell; one that is odd stands for characters that are not seen. */
export interface Piece {
  text: string
  odd: boolean
}

/** pieces splits a cell into what is read as it is and what has to be pointed out. */
export function pieces(cell: string): Piece[] {
  const out: Piece[] = []
  const push = (text: string, odd: boolean) => text && out.push({ text, odd })
  const lead = /^ */.exec(cell)?.[0].length ?? 0
  const tail = lead === cell.length ? 0 : (/ *$/.exec(cell)?.[0].length ?? 0)
  const inner = cell.slice(lead, cell.length - tail)
  push('·'.repeat(lead), true)
  let at = 0
  for (const m of inner.matchAll(invisible)) {
    push(inner.slice(at, m.index), false)
    push(names[m[0]] ?? `U+${m[0].codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`, true)
    at = m.index + m[0].length
  }
  push(inner.slice(at), false)
  push('·'.repeat(tail), true)
  return out
}

/** typeName is the script's word for a type of DuckDB; what scripts have no word for stays as it is. */
export function typeName(duckdb: string): string {
  const words: Record<string, string> = {
    VARCHAR: 'string',
    BIGINT: 'int',
    DOUBLE: 'float',
    BOOLEAN: 'bool',
    DATE: 'date',
    TIMESTAMP: 'datetime',
    'TIMESTAMP WITH TIME ZONE': 'timestamptz',
    'DECIMAL(18,2)': 'decimal2',
  }
  if (duckdb.endsWith('[]')) return `list(${typeName(duckdb.slice(0, -2))})`
  return words[duckdb] ?? duckdb.toLowerCase()
}

/** marked splits a record at the first place of the value that failed: before it, it, behind it. */
export function marked(record: string, value: string): [string, string, string] {
  const quoted = `"${value.replaceAll('"', '""')}"`
  const cut = value.endsWith('…') ? value.slice(0, -1) : value
  for (const text of [quoted, cut]) {
    // A whole field is meant rather than the same characters inside of another one.
    const whole = [...record.matchAll(new RegExp(escaped(text), 'g'))].find(
      (m) =>
        !/[\p{L}\p{N}]$/u.test(record.slice(0, m.index)) && !/^[\p{L}\p{N}]/u.test(record.slice(m.index + text.length)),
    )
    const at = text ? (whole?.index ?? record.indexOf(text)) : -1
    if (at >= 0) return [record.slice(0, at), text, record.slice(at + text.length)]
  }
  return [record, '', '']
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
