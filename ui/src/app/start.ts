// What a start is made of, in the address, in memory and in a request.
import { command } from './shell'

export interface Param {
  name: string
  value: string
}

export interface StartForm {
  script: string
  note: string
  start: string[]
  fresh: boolean
  params: Param[]
  deadline: string
  maxElapsed: string
  maxCost: string
  priority: string
}

/** secret reports whether a name looks as if its value were not for addresses and memory. */
export function secret(name: string): boolean {
  return /pass|secret|token|key|credential|auth|dsn|pwd/i.test(name)
}

/** formOf reads the form from the query of an address. */
export function formOf(query: URLSearchParams): StartForm {
  const priority = query.get('priority') ?? ''
  return {
    script: query.get('script') ?? '',
    note: query.get('note') ?? '',
    start: (query.get('start') ?? '').split(',').filter(Boolean),
    fresh: query.get('fresh') === '1',
    params: [...new URLSearchParams(query.get('params') ?? '')].map(([name, value]) => ({ name, value })),
    deadline: query.get('deadline') ?? '',
    maxElapsed: query.get('max_elapsed') ?? '',
    maxCost: query.get('max_cost') ?? '',
    priority: ['high', 'low'].includes(priority) ? priority : '',
  }
}

/** queryOf writes the form for an address: without the values of parameters that may be secrets. */
export function queryOf(form: StartForm): Record<string, string | undefined> {
  const params = new URLSearchParams()
  for (const p of form.params) if (p.name) params.append(p.name, secret(p.name) ? '' : p.value)
  return {
    script: form.script || undefined,
    note: form.note || undefined,
    start: form.start.join(',') || undefined,
    fresh: form.fresh ? '1' : undefined,
    params: params.toString() || undefined,
    deadline: form.deadline || undefined,
    max_elapsed: form.maxElapsed || undefined,
    max_cost: form.maxCost || undefined,
    priority: form.priority || undefined,
  }
}

/** bodyOf writes the form as a request has it. */
export function bodyOf(form: StartForm) {
  const params = Object.fromEntries(form.params.filter((p) => p.name).map((p) => [p.name, p.value]))
  return {
    script: form.script,
    ...(form.note ? { note: form.note } : {}),
    ...(form.start.length ? { start: form.start } : {}),
    ...(form.fresh ? { fresh: true } : {}),
    ...(Object.keys(params).length ? { params } : {}),
    ...(form.deadline ? { deadline: form.deadline } : {}),
    ...limitOf(form.maxElapsed, form.maxCost),
    ...(form.priority ? { priority: form.priority as 'high' | 'low' } : {}),
  }
}

/** limitOf writes what a run may take as requests have it. */
export function limitOf(elapsed: string, cost: string) {
  const [time, usd] = [elapsed.trim(), cost.trim()]
  return { ...(time ? { max_elapsed: time } : {}), ...(usd ? { max_cost: usd } : {}) }
}

/** limitWords writes it as commands have it. */
export function limitWords(elapsed: string, cost: string): string[] {
  return Object.entries(limitOf(elapsed, cost)).flatMap(([name, value]) => [`--${name.replace('_', '-')}`, value])
}

/** commandOf is what does the same from a terminal. Values that may be secrets are left to be written there. */
export function commandOf(form: StartForm, workspace: string): string {
  const words = ['thalweg', 'run', form.script]
  if (form.start.length) words.push('--start', form.start.join(','))
  for (const p of form.params) if (p.name) words.push('--param', `${p.name}=${secret(p.name) ? '…' : p.value}`)
  if (form.fresh) words.push('--fresh')
  if (form.note) words.push('--note', form.note)
  if (form.deadline) words.push('--deadline', form.deadline)
  words.push(...limitWords(form.maxElapsed, form.maxCost))
  if (form.priority) words.push('--priority', form.priority)
  return command(...words, '--workspace', workspace)
}

/** missing lists the parameters that problems of a script ask for: their hints propose to set each. */
export function missing(hints: (string | undefined)[]): string[] {
  const found = hints.flatMap((h) => [...(h ?? '').matchAll(/\{\{set param=([^={}]+)=/g)].map((m) => m[1] as string))
  return [...new Set(found)]
}
