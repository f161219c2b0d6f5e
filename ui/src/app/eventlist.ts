// Which events of a run are asked for, and which rows of a long list are drawn.

export const kinds = [
  'run_created',
  'run_completed',
  'order_begun',
  'order_ended',
  'node_planned',
  'node_moved',
  'node_heard',
  'batch_claimed',
  'batch_ended',
] as const
export type Kind = (typeof kinds)[number]

export const importances = ['concern', 'usual', 'noise'] as const
export type Importance = (typeof importances)[number]

/** Choice is what the address says of the events: its parameters have their names. */
export interface Choice {
  kind: Kind[]
  not: Kind[]
  node: string
  text: string
  least: Importance
}

/** keys are the parameters of the address. */
export const keys = { kind: 'kind', not: 'not', node: 'of', text: 'says', least: 'least' } as const

export const wordOf = (kind: string): string => kind.replaceAll('_', ' ')

/** choiceOf reads the address. What it does not know is left out. */
export function choiceOf(query: URLSearchParams): Choice {
  const list = (key: string): Kind[] => {
    const said = (query.get(key) ?? '').split(',')
    return kinds.filter((k) => said.includes(k))
  }
  const least = query.get(keys.least)
  return {
    kind: list(keys.kind),
    not: list(keys.not),
    node: query.get(keys.node) ?? '',
    text: query.get(keys.text) ?? '',
    least: importances.find((i) => i === least) ?? 'concern',
  }
}

/** queryOf is what the server is asked for. */
export function queryOf(c: Choice) {
  return {
    least: c.least,
    ...(c.kind.length ? { kind: c.kind } : {}),
    ...(c.not.length ? { not: c.not } : {}),
    ...(c.node ? { node: c.node } : {}),
    ...(c.text ? { text: c.text } : {}),
  }
}

/** toggled says how the address changes when a kind is chosen or left out, or is not any more. */
export function toggled(c: Choice, way: 'kind' | 'not', kind: Kind): Record<string, string | undefined> {
  const other = way === 'kind' ? 'not' : 'kind'
  const on = !c[way].includes(kind)
  const list = on ? kinds.filter((k) => k === kind || c[way].includes(k)) : c[way].filter((k) => k !== kind)
  const changes: Record<string, string | undefined> = {
    [keys[way]]: list.join(','),
    [keys[other]]: c[other].filter((k) => k !== kind).join(','),
  }
  // Who asks for a kind gets all of it, whatever its importance.
  if (on && way === 'kind') changes[keys.least] = 'noise'
  return changes
}

/** drawn says which rows of a list are drawn: those in view, and some around them. */
export function drawn(rows: number, height: number, top: number, view: number): { from: number; to: number } {
  const around = 10
  const first = Math.min(Math.floor(Math.max(0, top) / height), Math.max(0, rows - Math.ceil(view / height)))
  return { from: Math.max(0, first - around), to: Math.min(rows, first + Math.ceil(view / height) + around) }
}
