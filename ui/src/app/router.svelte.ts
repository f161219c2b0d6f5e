// Where the viewer is: the address of the page holds everything that was chosen.

export type Page =
  | 'now'
  | 'workspace'
  | 'run'
  | 'node'
  | 'gate'
  | 'table'
  | 'start'
  | 'timeline'
  | 'trace'
  | 'diff'
  | 'sql'
  | 'dev'
  | 'script'
  | 'nowhere'

export interface Place {
  page: Page
  params: Record<string, string>
}

const patterns: [Page, string][] = [
  ['now', '/'],
  ['workspace', '/w/:workspace'],
  ['start', '/w/:workspace/start'],
  ['run', '/w/:workspace/runs/:run'],
  ['node', '/w/:workspace/runs/:run/nodes/:node'],
  ['gate', '/w/:workspace/gates/:run/:gate'],
  ['table', '/w/:workspace/tables/:table'],
  ['timeline', '/w/:workspace/runs/:run/timeline'],
  ['trace', '/w/:workspace/trace'],
  ['diff', '/w/:workspace/diff'],
  ['sql', '/w/:workspace/sql'],
  ['dev', '/w/:workspace/dev/:script'],
  ['script', '/w/:workspace/scripts/:script'],
]

/** placeOf says which page a path is of. */
export function placeOf(path: string): Place {
  const parts = path.split('/').filter(Boolean)
  for (const [page, pattern] of patterns) {
    const names = pattern.split('/').filter(Boolean)
    if (names.length !== parts.length) continue
    const params: Record<string, string> = {}
    const fits = names.every((name, i) => {
      if (!name.startsWith(':')) return name === parts[i]
      try {
        params[name.slice(1)] = decodeURIComponent(parts[i] as string)
      } catch {
        return false
      }
      return true
    })
    if (fits) return { page, params }
  }
  return { page: 'nowhere', params: {} }
}

/**
 * referenceOf is the run that an address names by other than its number, as `last`; undefined: it names none like that.
 * Pages are shown at addresses with numbers only: links from them stay with that run.
 */
export function referenceOf(place: Place, query: URLSearchParams): string | undefined {
  const said = place.page === 'table' ? (query.get('run') ?? 'last') : place.params.run
  return said === undefined || /^[1-9]\d{0,14}$/.test(said) ? undefined : said
}

/** numbered is the address of a place with the number of its run. */
export function numbered(place: Place, query: URLSearchParams, run: number): string {
  const pattern = (patterns.find(([page]) => page === place.page) as [Page, string])[1]
  const params: Record<string, string | number> = { ...place.params, run }
  const parts = pattern.split('/').filter(Boolean)
  const said = new URLSearchParams(query)
  if (place.page === 'table') said.set('run', `${run}`)
  const to = path(...parts.map((p) => (p.startsWith(':') ? (params[p.slice(1)] as string | number) : p)))
  return said.size ? `${to}?${said}` : to
}

/** path writes the address of parts, each of them hostile. */
export function path(...parts: (string | number)[]): string {
  return `/${parts.map((p) => encodeURIComponent(p)).join('/')}`
}

/** query writes what follows a path, without what is empty. */
function query(values: Record<string, string | number | undefined>): string {
  const given = Object.entries(values).filter(([, v]) => v !== undefined && v !== '')
  return given.length ? `?${new URLSearchParams(given.map(([k, v]) => [k, `${v}`]))}` : ''
}

export const links = {
  workspace: (w: string) => path('w', w),
  schedules: (w: string) => `${path('w', w)}?tab=schedules`,
  start: (w: string) => path('w', w, 'start'),
  run: (w: string, run: number) => path('w', w, 'runs', run),
  node: (w: string, run: number, node: string, tab?: string) =>
    path('w', w, 'runs', run, 'nodes', node) + (tab ? `?tab=${encodeURIComponent(tab)}` : ''),
  gate: (w: string, run: number, gate: string) => path('w', w, 'gates', run, gate),
  timeline: (w: string, run: number) => path('w', w, 'runs', run, 'timeline'),
  trace: (w: string, table: string, run?: number, where?: string) =>
    path('w', w, 'trace') + query({ table, run, where }),
  diff: (w: string, table: string, a: number, b: number) => path('w', w, 'diff') + query({ table, a, b }),
  sql: (w: string, q?: string) => path('w', w, 'sql') + query({ q }),
  dev: (w: string, script: string) => path('w', w, 'dev', script),
  script: (w: string, file: string, at: { run?: number; line?: number; node?: string }) =>
    path('w', w, 'scripts', file) + query({ ...at }),
  /** source leads to the place of a failure in the script of its run, or in a file that it uses. */
  source: (w: string, run: number, script: string, f: { node?: string; place?: { file?: string; line?: number } }) =>
    links.script(w, f.place?.file || script, { run, line: f.place?.line, node: f.node }),
  picture: (w: string, run: number) => path('v1', 'workspaces', w, 'runs', run, 'graph.svg'),
  download: (w: string, run: number | string, table: string, format = 'csv') =>
    `${path('v1', 'workspaces', w, 'runs', run, 'tables', table, 'download')}?format=${format}`,
  table: (w: string, run: number, table: string) => `${path('w', w, 'tables', table)}?run=${run}`,
}

class Router {
  #url = $state(new URL(location.href))

  get place(): Place {
    return placeOf(this.#url.pathname)
  }

  get query(): URLSearchParams {
    return this.#url.searchParams
  }

  get path(): string {
    return this.#url.pathname
  }

  go(to: string): void {
    history.pushState(null, '', to)
    this.#url = new URL(location.href)
    scrollTo(0, 0)
    document.getElementById('main')?.focus({ preventScroll: true })
  }

  /** replace goes to another address in the place of this one. */
  replace(to: string): void {
    history.replaceState(null, '', to)
    this.#url = new URL(location.href)
  }

  /** set changes parameters of the address, which the back button passes over. */
  set(changes: Record<string, string | undefined>): void {
    const url = new URL(this.#url)
    for (const [key, value] of Object.entries(changes)) {
      if (value) url.searchParams.set(key, value)
      else url.searchParams.delete(key)
    }
    history.replaceState(null, '', url)
    this.#url = url
  }

  /** listen follows links and the back button until the returned function is called. */
  listen(): () => void {
    const popped = () => {
      this.#url = new URL(location.href)
    }
    const clicked = (e: MouseEvent) => {
      const a = (e.target as Element).closest('a')
      if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
      if (
        a.origin !== location.origin ||
        a.target ||
        a.hasAttribute('download') ||
        a.getAttribute('href')?.startsWith('#')
      )
        return
      e.preventDefault()
      this.go(a.href)
    }
    addEventListener('popstate', popped)
    document.addEventListener('click', clicked)
    return () => {
      removeEventListener('popstate', popped)
      document.removeEventListener('click', clicked)
    }
  }
}

export const router = new Router()
