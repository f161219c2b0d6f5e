// What a page shows is loaded, kept while it is loaded again, and loaded again when the server tells of a change.
import { untrack } from 'svelte'
import type { Failure } from '../api/client'
import { type Line, live } from './live.svelte'
import { session } from './session.svelte'

const pauseMS = 150 // between two loads of the same; longer if they take long
const pouringMS = 1000 // between them while changes pour in
const pouring = 20 // changes since a load began are many
const idleMS = 30_000 // after which it is loaded even if nothing was heard

/** Loaded is a value of the server, as it was `at`. */
export class Loaded<T> {
  value = $state.raw<T>()
  failure = $state.raw<Failure>()
  at = $state(0)
  /** stale: what is shown was loaded with other parameters than those of the address. */
  stale = $state(false)
  #load: () => Promise<T> = () => Promise.reject()
  #version = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #busy = false
  #again = false
  #took = 0
  #changes = 0
  #ended = false
  #idle: boolean

  /** idle: it is loaded again now and then, even if nothing is heard. */
  constructor(idle: boolean) {
    this.#idle = idle
  }

  /** begin loads with another function. */
  begin(load: () => Promise<T>): void {
    this.#load = load
    this.#version++
    this.#ended = false
    this.stale = this.value !== undefined
    this.#busy = false
    void this.now()
  }

  /** soon loads it again, at most so often. */
  soon = (): void => {
    if (this.#ended) return
    this.#changes++
    if (this.#busy) this.#again = true
    else this.#later()
  }

  #later(): void {
    clearTimeout(this.#timer)
    const pause = Math.max(this.#changes > pouring ? pouringMS : pauseMS, 3 * this.#took)
    this.#timer = setTimeout(this.now, Math.max(0, this.at + pause - Date.now()))
  }

  now = async (): Promise<void> => {
    clearTimeout(this.#timer)
    if (this.#ended) return
    const began = Date.now()
    const version = this.#version
    this.#busy = true
    this.#again = false
    this.#changes = 0
    try {
      const value = await this.#load()
      if (version !== this.#version) return
      this.value = value
      this.failure = undefined
      this.stale = false
    } catch (e) {
      if (version !== this.#version) return
      this.failure = e as Failure
    }
    this.#busy = false
    this.at = Date.now()
    this.#took = this.at - began
    if (this.#again) this.#later()
    else if (this.#idle) this.#timer = setTimeout(this.#rested, idleMS)
  }

  #rested = (): void => {
    if (document.hidden) this.#timer = setTimeout(this.#rested, idleMS)
    else void this.now()
  }

  end(): void {
    this.#ended = true
    this.#version++
    clearTimeout(this.#timer)
  }
}

/** once are the further arguments of load for what does not change while it is shown. */
export const once: [() => string[], () => boolean, boolean] = [() => [], () => true, false]

/**
 * load loads a value while the component lives, and anew when what `make` reads changes, when `topics` tell of a change,
 * when the stream begins again, and when who looks has signed in again. What never changes is not loaded when idle.
 */
export function load<T>(
  make: () => () => Promise<T>,
  topics: () => string[] = () => [],
  when: (line: Line) => boolean = () => true,
  idle = true,
): Loaded<T> {
  const it = new Loaded<T>(idle)
  $effect(() => {
    const one = make()
    if (session.expired) return
    untrack(() => it.begin(one))
    return () => it.end()
  })
  $effect(() => {
    const wanted = topics()
    if (wanted.length) return live.on(wanted, (line) => when(line) && it.soon(), it.soon)
  })
  return it
}
