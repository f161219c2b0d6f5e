// The lines of a trace: rows and what each is made of, as far as they are unfolded.
import type { Origin, Tree, TreeRow } from './results'

export interface TreeLine {
  /** key says where the line is: the places of the rows that lead to it. */
  key: string
  level: number
  row?: TreeRow
  origin?: Origin
  /** open: its lines below are shown; undefined: it has none. */
  open?: boolean
  place: number
  of: number
}

export const linesMax = 5000 // that are shown at once

/** origins are what a row is made of: one row is a line of its own, many have a line that counts them. */
function below(tree: Tree, row: TreeRow): { row?: TreeRow; origin: Origin }[] {
  return (row.from ?? []).map((origin) => {
    const one = origin.count === 1 && origin.rows?.length === 1 ? tree.rows?.[origin.rows[0] as number] : undefined
    return { row: one, origin }
  })
}

/** linesOf lists what is seen, where `folded` says which lines differ from `unfolded`. */
export function linesOf(tree: Tree, changed: ReadonlySet<string>, unfolded: boolean): TreeLine[] {
  const out: TreeLine[] = []
  const rows = tree.rows ?? []
  const depthMax = rows.length // rows are made of others than themselves
  const show = (found: { row?: TreeRow; origin?: Origin }[], above: string, level: number) => {
    found.forEach(({ row, origin }, i) => {
      if (out.length >= linesMax) return
      const key = `${above}/${i}`
      const has = row ? (row.from?.length ?? 0) > 0 : (origin?.rows?.length ?? 0) > 0
      const open = has && level < depthMax * 2 ? changed.has(key) !== unfolded : undefined
      out.push({ key, level, row, origin, open, place: i + 1, of: found.length })
      if (!open) return
      if (row) show(below(tree, row), key, level + 1)
      else
        show(
          (origin?.rows ?? []).flatMap((r) => rows[r] ?? []).map((r) => ({ row: r })),
          key,
          level + 1,
        )
    })
  }
  show(
    (tree.roots ?? []).flatMap((r) => rows[r] ?? []).map((row) => ({ row })),
    '',
    1,
  )
  return out
}

/** above returns the key of the line that a line is below of. */
export function above(key: string): string {
  return key.slice(0, key.lastIndexOf('/'))
}

/** roleOf says what rows are for the row that is made of them. */
export function roleOf(role: string): string {
  const words: Record<string, string> = {
    row: 'computed from',
    left: 'left of the join',
    right: 'looked up in',
    group: 'grouped from',
    same: 'the same key, the first was kept',
    batch: 'a function got together',
    query: 'a query made it of',
    all: 'any of',
  }
  return words[role] ?? role
}

/** placeOf names a row: file:line of a record, or a table with the row's number. */
export function placeOf(row: TreeRow): string {
  if (row.file) return row.line ? `${row.file}:${row.line}` : row.row ? `${row.file}, row ${row.row}` : row.file
  return [row.table ?? row.node ?? '', row.row ? `row ${row.row}` : ''].filter(Boolean).join(', ')
}
