// Long work of the server: it is begun, looked at until it is over, and cancelled when it is not wanted any more.
import { untrack } from 'svelte'
import { api, Failure } from '../api/client'
import type { Job, ProgressProgress } from '../api/schema'
import { exact } from './results'

const firstMS = 80 // until it is looked at first
const mostMS = 1000 // between two looks

/** delayOf is how long to wait before the next look; it grows. */
export function delayOf(looks: number): number {
  return Math.min(mostMS, firstMS * 1.6 ** looks)
}

/** Work is a job, its result or why there is none. */
export class Work<T> {
  result = $state.raw<T>()
  failure = $state.raw<Failure>()
  status = $state<'none' | 'waiting' | 'running' | 'done' | 'failed' | 'canceled'>('none')
  began = $state(0)
  progress = $state.raw<ProgressProgress>()
  #over = new AbortController()
  #id = ''

  get busy(): boolean {
    return this.status === 'waiting' || this.status === 'running'
  }

  /** begin does something else from now on; what was under way is cancelled. */
  async begin(start: (signal: AbortSignal) => Promise<Job>): Promise<void> {
    this.cancel()
    const { signal } = this.#over
    this.failure = undefined
    this.result = undefined
    this.progress = undefined
    this.status = 'waiting'
    this.began = Date.now()
    try {
      const job = await start(signal)
      if (signal.aborted) return void remove(job.id) // it was cancelled before its name was known
      this.#id = job.id
      await this.#wait(job, signal)
    } catch (e) {
      if (signal.aborted) return
      this.failure = e as Failure
      this.status = 'failed'
    }
  }

  async #wait(job: Job, signal: AbortSignal): Promise<void> {
    for (let looks = 0; job.status === 'waiting' || job.status === 'running'; looks++) {
      this.status = job.status
      this.progress = job.progress
      await pause(delayOf(looks), signal)
      const params = { path: { job: job.id } }
      const { data } = await api.GET('/v1/jobs/{job}', { params, signal, parseAs: 'text' })
      job = exact<Job>(data as unknown as string)
    }
    if (signal.aborted) return
    this.#id = ''
    this.status = job.status
    this.result = job.result as T | undefined
    if (job.problem) this.failure = new Failure(job.problem, job.problem.detail)
  }

  /** cancel ends it, here and on the server. */
  cancel = (): void => {
    this.#over.abort()
    this.#over = new AbortController()
    if (this.#id) remove(this.#id)
    this.#id = ''
    if (this.busy) this.status = 'canceled'
  }
}

function remove(job: string): void {
  api.DELETE('/v1/jobs/{job}', { params: { path: { job } } }).catch(() => {}) // it ends by itself after its time
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((go) => {
    const timer = setTimeout(go, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      go()
    })
  })
}

/** work does a job while the component lives, and another one when what `make` reads changes; undefined: none. */
export function work<T>(make: () => ((signal: AbortSignal) => Promise<Job>) | undefined): Work<T> {
  const it = new Work<T>()
  $effect(() => {
    const start = make()
    untrack(() => {
      if (start) void it.begin(start)
    })
    return () => it.cancel()
  })
  return it
}
