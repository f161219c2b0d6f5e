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
