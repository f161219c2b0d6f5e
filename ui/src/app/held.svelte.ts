// Nothing moves under the pointer: while somebody points at a list, or has focus in it, its rows stay where they are.
// They show what is known of them; rows that came are counted, and shown when somebody asks for them.

/** keep returns rows in the order of those that were shown before, and how many came. */
export function keep<T>(shown: T[], now: T[], key: (row: T) => string): { rows: T[]; more: number } {
  const current = new Map(now.map((row) => [key(row), row]))
  const rows = shown.map((row) => current.get(key(row)) ?? row)
  const known = new Set(shown.map(key))
  return { rows, more: now.filter((row) => !known.has(key(row))).length }
}

/** Held is a list that does not move while it is held. */
export class Held<T> {
  #rows: () => T[]
  #key: (row: T) => string
  #held = $state<T[]>()

  constructor(rows: () => T[], key: (row: T) => string) {
    this.#rows = rows
    this.#key = key
  }

  #view = $derived.by(() => {
    const now = this.#rows()
    return this.#held ? keep(this.#held, now, this.#key) : { rows: now, more: 0 }
  })

  get rows(): T[] {
    return this.#view.rows
  }

  /** more is how many rows have come since. */
  get more(): number {
    return this.#view.more
  }

  hold = (): void => {
    this.#held ??= this.#rows()
  }

  /** release shows the list as it is now. */
  release = (): void => {
    this.#held = undefined
  }

  /** around holds the list while the pointer or the focus is in an element; for {@attach}. */
  around = (element: Element): (() => void) => {
    const letGo = () => {
      // What has come is shown when somebody asks for it: the list does not move when the pointer leaves, either.
      if (!this.more && !element.matches(':hover') && !element.contains(document.activeElement)) this.release()
    }
    const events: [string, () => void][] = [
      ['pointerenter', this.hold],
      ['focusin', this.hold],
      ['pointerleave', letGo],
      ['focusout', () => setTimeout(letGo)],
    ]
    for (const [name, call] of events) element.addEventListener(name, call)
    return () => {
      for (const [name, call] of events) element.removeEventListener(name, call)
    }
  }
}
