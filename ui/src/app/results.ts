// What docs/openapi.json leaves open: results of jobs, and problems of scripts as they are sent.

/** Diagnostic is a problem of a script with its place. */
export interface Diagnostic {
  severity: string
  file?: string
  line?: number
  column?: number
  message: string
  hint?: string
  source?: string
}

export type Value = string | number | boolean | null
export type Values = Record<string, Value>

/** Tree holds rows and the rows that they are made of, which name each other by their places in it. */
export interface Tree {
  target: string
  run: number
  matches: number
  roots: number[] | null
  rows: TreeRow[] | null
}

export interface TreeRow {
  id: number
  run?: number
  node?: string
  type?: string
  table?: string
  file?: string
  row?: number
  line?: number
  text?: string
  values?: Values
  note?: string
  from?: Origin[]
}

/** Origin is rows of one table or file that a row is made of: so many, and the places of the first. */
export interface Origin {
  role: string
  run?: number
  table?: string
  file?: string
  count: number
  rows: number[] | null
}

/** Diff says how a table of run B differs from that of run A. */
export interface Diff {
  table: string
  run_a: number
  run_b: number
  equal: boolean
  key: string[] | null
  key_of?: string
  columns: string[] | null
  schema: { column: string; type_a?: string; type_b?: string }[] | null
  rows_a: number
  rows_b: number
  removed: number
  added: number
  changed: number
  changed_in: { column: string; rows: number }[] | null
  repeated_keys_a: number
  repeated_keys_b: number
  sample_removed: DiffRow[] | null
  sample_added: DiffRow[] | null
  sample_changed: DiffRow[] | null
}

export interface DiffRow {
  row?: Values
  times?: number
  key?: Values
  a?: Values
  b?: Values
}

const texts = /"(?:[^"\\]+|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** exact reads JSON without rounding: numbers that JavaScript would write otherwise become texts. */
export function exact<T>(text: string): T {
  return JSON.parse(text.replace(texts, (t) => (t.startsWith('"') || `${Number(t)}` === t ? t : `"${t}"`))) as T
}

/** cell is a value as a cell shows it; null is NULL. */
export function cell(value: Value | undefined): string | null {
  return value === null || value === undefined ? null : `${value}`
}

/** BatchSQL is what a batch executes. Each operator of the plan reads those behind it that are one deeper. */
export interface BatchSQL {
  run: number
  batch: number
  setup: string[]
  python?: string
  sql?: string
  plan: { depth: number; operator: string; says: string[] }[]
}
