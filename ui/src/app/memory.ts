// What this browser remembers for who uses it, without secrets. It may refuse to, or forget.

const prefix = 'thalweg-'

/** recall returns what was remembered under a name, if it still has the form of `otherwise`. */
export function recall<T>(name: string[], otherwise: T): T {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(keyOf(name)) ?? 'null')
    return found !== null && typeof found === typeof otherwise && Array.isArray(found) === Array.isArray(otherwise)
      ? (found as T)
      : otherwise
  } catch {
    return otherwise
  }
}

/** remember keeps a value under a name; undefined forgets it. */
export function remember(name: string[], value: unknown): void {
  try {
    if (value === undefined) localStorage.removeItem(keyOf(name))
    else localStorage.setItem(keyOf(name), JSON.stringify(value))
  } catch {
    // there is no room, or none is given
  }
}

function keyOf(name: string[]): string {
  return prefix + name.map(encodeURIComponent).join('/')
}

/** latest puts a text in front of those used before, each once, at most so many. */
export function latest(before: string[], text: string, max: number): string[] {
  return [text, ...before.filter((b) => b !== text)].slice(0, max)
}
