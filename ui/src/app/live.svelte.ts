// One stream of events for all tabs of a browser: a host has six connections over HTTP/1.1, and each stream
// would take one. Web Locks elect a tab; it listens, and hands on what it hears to the others.
import { untrack } from 'svelte'
import { topicOf } from './dev'
import { type Event, events } from './events'
import { session } from './session.svelte'

export type Connection = 'connecting' | 'live' | 'reconnecting'

/** Line is something that the server has told of a run. */
export interface Line {
  event: string
  workspace: string
  run: number
  node?: string
  [member: string]: unknown
}

type Message =
  | { say: 'want'; tab: string; topics: string[] }
  | { say: 'bye'; tab: string }
  | { say: 'who' }
  | { say: 'lines'; lines: Line[] }
  | { say: 'is'; connection: Connection; topics: string[]; opened?: boolean }

const repeatMS = 20_000 // how often a tab says what it wants; the server's heartbeat is 15 s
const forgetMS = 180_000 // browsers let tabs in the background speak once a minute
const silentMS = 40_000 // after which a stream is taken for dead
const againMS = 1500 // before a stream that has ended is opened again
const topicsMax = 20 // of the server

interface Listener {
  topics: string[]
  call: (line: Line) => void
  opened: () => void
}

class Live {
  #connection = $state<Connection>('connecting')
  /** #served are the topics that are listened to, #mine those that this tab wants. */
  #served = $state.raw<string[]>([])
  #mine = $state.raw<string[]>([])
  /** connection is how news of what this tab shows come. */
  connection = $derived<Connection>(
    this.#connection === 'live' && !this.#mine.every((t) => this.#served.includes(t)) ? 'connecting' : this.#connection,
  )
  /** heard is when the server was last heard of; it is told once a second. */
  heard = $state(Date.now())
  #tab = crypto.randomUUID()
  #channel: BroadcastChannel | undefined
  #listeners = new Set<Listener>()
  #wants = new Map<string, { topics: string[]; at: number }>()
  #leads = false
  #stream: AbortController | undefined
  #open = ''
  #ids = ''
  /** #refused are topics that the server does not tell of: what is not there, or may not be seen. */
  #refused = new Set<string>()
  #last = Date.now()

  /** start takes part until the returned function is called. */
  start(): () => void {
    const over = new AbortController()
    const channel = new BroadcastChannel('thalweg-live')
    this.#channel = channel
    channel.onmessage = (e: MessageEvent<Message>) => this.#hear(e.data)
    const lead = () => {
      this.#leads = true
      this.#say({ say: 'who' })
      return new Promise<void>((end) => over.signal.addEventListener('abort', () => end()))
    }
    navigator.locks.request('thalweg-live', { signal: over.signal }, lead).catch(() => {}) // the page is left before it leads
    const repeat = setInterval(() => this.#repeat(), repeatMS)
    const bye = () => channel.postMessage({ say: 'bye', tab: this.#tab } satisfies Message)
    addEventListener('pagehide', bye)
    return () => {
      clearInterval(repeat)
      removeEventListener('pagehide', bye)
      over.abort()
      this.#stream?.abort()
      bye()
      channel.close()
      this.#channel = undefined
    }
  }

  /**
   * on calls back for each line of topics, until the returned function is called. opened is called when lines may have
   * been missed.
   */
  on(topics: string[], call: (line: Line) => void, opened: () => void = () => {}): () => void {
    const l = { topics, call, opened }
    this.#listeners.add(l)
    untrack(() => this.#want())
    return () => {
      this.#listeners.delete(l)
      queueMicrotask(() => this.#want())
    }
  }

  /** again listens anew, with the session that there is now. */
  again(): void {
    this.#refused.clear()
    untrack(() => this.#leads && this.#connect(true))
  }

  #want(): void {
    this.#mine = [...new Set([...this.#listeners].flatMap((l) => l.topics))]
    this.#say({ say: 'want', tab: this.#tab, topics: this.#mine })
  }

  #repeat(): void {
    this.#want()
    if (this.#leads && this.#stream && Date.now() - this.#last > silentMS) this.#connect(true)
  }

  /** say tells all tabs, this one as well. */
  #say(m: Message): void {
    if (!this.#channel) return
    this.#channel.postMessage(m)
    this.#hear(m)
  }

  #hear(m: Message): void {
    switch (m.say) {
      case 'want':
        this.#wants.set(m.tab, { topics: m.topics, at: Date.now() })
        if (!this.#leads) break
        this.#connect()
        if (m.tab !== this.#tab) this.#channel?.postMessage(this.#is(this.#connection))
        break
      case 'bye':
        this.#wants.delete(m.tab)
        if (this.#leads) this.#connect()
        break
      case 'who':
        this.#want()
        break
      case 'is':
        this.#connection = m.connection
        this.#served = m.topics
        if (m.connection === 'live') this.heard = Date.now()
        if (m.opened) for (const l of [...this.#listeners]) l.opened()
        break
      case 'lines':
        if (Date.now() - this.heard > 1000) this.heard = Date.now()
        for (const line of m.lines) this.#tell(line)
    }
  }

  #is(connection: Connection): Message {
    return { say: 'is', connection, topics: this.#open ? this.#open.split(',') : [] }
  }

  #tell(line: Line): void {
    const topic =
      line.event === 'run' || line.event === 'schedules'
        ? line.workspace
        : line.event === 'script'
          ? topicOf(line.workspace, `${line.script}`)
          : `${line.workspace}/${line.run}`
    for (const l of [...this.#listeners]) if (l.topics.includes(topic)) l.call(line)
  }

  /** connect listens to what the tabs want, if that is something else than before. */
  #connect(again = false): void {
    const now = Date.now()
    for (const [tab, w] of this.#wants) if (now - w.at > forgetMS) this.#wants.delete(tab)
    const wanted = [...new Set([...this.#wants.values()].flatMap((w) => w.topics))].filter((t) => !this.#refused.has(t))
    const topics = wanted.sort().slice(0, topicsMax)
    const open = topics.join(',')
    if (open === this.#open && !again) return
    this.#open = open
    this.#stream?.abort()
    this.#stream = undefined
    if (topics.length) void this.#listen(open)
  }

  async #listen(topics: string): Promise<void> {
    const over = new AbortController()
    this.#stream = over
    // What runs have behind them is not heard: once the stream is open, all that is shown is loaded again.
    const query = new URLSearchParams({ topics, from: 'end' })
    if (this.#ids) query.set('after', this.#ids)
    let status = 0
    try {
      status = await events(
        `/v1/stream?${query}`,
        over.signal,
        () => this.#say({ ...this.#is('live'), opened: true } as Message),
        this.#received,
      )
    } catch {
      // the connection is gone, or this stream is not wanted any more
    }
    if (this.#stream !== over) return
    this.#say(this.#is('reconnecting'))
    if (status === 401) {
      void session.load() // once somebody has signed in, again is called
      return
    }
    if ([400, 403, 404].includes(status)) await this.#sift(topics.split(','))
    setTimeout(() => {
      if (this.#stream === over) this.#connect(true)
    }, againMS)
  }

  /** sift finds the topics for which the server has refused all. */
  async #sift(topics: string[]): Promise<void> {
    for (const topic of topics) {
      const over = new AbortController()
      const answer = await fetch(`/v1/stream?${new URLSearchParams({ topics: topic })}`, { signal: over.signal }).catch(
        () => undefined,
      )
      if (answer && [400, 403, 404].includes(answer.status)) this.#refused.add(topic)
      over.abort()
    }
  }

  #received = (all: Event[]): void => {
    this.#last = Date.now()
    const lines: Line[] = []
    for (const e of all) {
      if (e.kind === 'reset' || e.kind === 'closed') continue // the stream ends now, and is opened again
      if (e.id) this.#ids = e.id
      lines.push({ ...(JSON.parse(e.data) as Line), event: e.kind })
    }
    if (lines.length) this.#say({ say: 'lines', lines })
  }
}

export const live = new Live()
