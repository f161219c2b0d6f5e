// How figures, times and names are written. All of it is text; nothing is markup.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

export function count(n: number): string {
  return whole.format(n)
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`
}

/** bytes writes an amount with a binary unit. */
export function bytes(n: number): string {
  let unit = 0
  while (n >= 1024 && unit < 5) {
    n /= 1024
    unit++
  }
  return `${unit === 0 ? n : n.toFixed(n < 10 ? 1 : 0)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit]}`
}

const units: [number, string, number, string][] = [
  [86400, 'd', 3600, 'h'],
  [3600, 'h', 60, 'min'],
  [60, 'min', 1, 's'],
]

/** duration writes milliseconds as the two largest units that they have. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const s = ms / 1000
  if (s < 59.5) return `${s.toFixed(s < 10 ? 1 : 0)} s`
  for (const [size, name, next, small] of units) {
    const rounded = Math.round(s / next) * next
    if (rounded < size) continue
    const rest = (rounded % size) / next
    return `${Math.floor(rounded / size)} ${name}${rest ? ` ${rest} ${small}` : ''}`
  }
  return `${Math.round(s)} s`
}

/** workerTime writes what workers spent, in milliseconds, as hours or seconds of one worker. */
export function workerTime(ms: number): string {
  const hours = ms / 3_600_000
  if (hours >= 1) return `${hours < 10 ? hours.toFixed(1) : count(hours)} worker-hours`
  const s = ms / 1000
  const said = s > 0 && s < 10 ? s.toFixed(1) : count(s)
  return `${said} worker-seconds`
}

/** dollars writes an amount in cents, and one of less than a dime with two digits that say something. */
export function dollars(usd: number): string {
  let digits = 2
  for (let least = 0.1; usd && usd < least && digits < 6; least /= 10) digits++
  return `$${usd.toFixed(digits)}`
}

/** cost writes what work has cost, how much of it was lost, and its price as far as it is known. */
export function cost(c: { worked_ms: number; lost_ms: number; usd?: number; usd_partial?: boolean }): string {
  const all = workerTime(c.worked_ms + c.lost_ms)
  const lost = c.lost_ms ? `, ${((100 * c.lost_ms) / (c.worked_ms + c.lost_ms)).toFixed(0)} % lost` : ''
  const price = c.usd === undefined ? '' : `, ${c.usd_partial ? '≥ ' : ''}${dollars(c.usd)}`
  return all + lost + price
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' })
const year = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'long' })

/** moment writes an instant as briefly as it is clear at `now`, in the zone of the viewer. */
export function moment(at: string | number | Date, now = new Date()): string {
  const t = new Date(at)
  if (t.toDateString() === now.toDateString()) return clock.format(t)
  const near = Math.abs(t.getTime() - now.getTime()) < 180 * 86400_000
  return `${(near ? day : year).format(t)} ${clock.format(t)}`
}

/** instant writes an instant whole, for who wants to be sure. */
export function instant(at: string | number | Date): string {
  const t = new Date(at)
  return `${exact.format(t)}, ${exact.resolvedOptions().timeZone}\n${t.toISOString()}`
}

/** ago says how long ago an instant was. */
export function ago(at: string | number | Date, now: number): string {
  const ms = now - new Date(at).getTime()
  return ms < 45_000 ? 'just now' : `${duration(Math.round(ms / 60_000) * 60_000 || 60_000)} ago`
}

/** scriptName is a script's file without its folders and its ending. */
export function scriptName(path: string): string {
  return path.replace(/^.*\//, '').replace(/\.(ya?ml|json)$/, '')
}

/** short is the beginning of a digest. */
export function short(digest: string): string {
  return digest.replace(/^sha256:/, '').slice(0, 6)
}

/**
 * plain replaces proposals of actions in a text of the server by their words, and names characters that would turn the
 * direction of writing.
 */
export function plain(text: string): string {
  return text
    .replace(/\{\{(?:do|set) ([a-z-]+)[^}]*\}\}/g, (_, verb: string) => verb.replaceAll('-', ' '))
    .replace(/\p{Bidi_Control}/gu, (c) => `U+${c.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`)
}

/** ranges is a list of numbers from one to another: the first few, as people write it. */
export function ranges(list: [number, number][], most = 20): string {
  const some = list.slice(0, most).map(([from, to]) => (from === to ? count(from) : `${count(from)}–${count(to)}`))
  return some.join(', ') + (list.length > most ? ' …' : '')
}
