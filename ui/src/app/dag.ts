// The picture of a run with many nodes: what is open or has failed is shown, its neighbours that are done or have not
// begun are folded into groups. The places come from the layout of the whole, which is made once.
import type { Edge, Graph, Vertex } from '../api/schema'
import { look } from './status'

/** foldFrom is the number of nodes from which a picture is folded, and of which it shows so many unfolded. */
export const foldFrom = 150

const gapX = 28
const gapY = 46
const margin = 16
const widthMax = 1400 // of a rank; a wider one goes on below

export interface Box {
  id: string
  x: number
  y: number
  width: number
  height: number
  vertex?: Vertex
  group?: Group
}

export interface Group {
  word: string
  tag: string
  nodes: Vertex[]
}

export interface Link {
  kind: string
  from: Box
  to: Box
  d: string
  top: number
  bottom: number
}

export interface Picture {
  width: number
  height: number
  boxes: Box[]
  links: Link[]
}

export type StatusOf = (v: Vertex) => string | undefined

/** isOpen says whether a node is at work, waits for people, or has failed. */
export function isOpen(status: string | undefined): boolean {
  return status === 'paused' || !['done', 'open'].includes(look(status ?? 'pending').tone)
}

/** whole is the picture as it was laid out. */
export function whole(graph: Graph): Picture {
  const boxes = (graph.vertices ?? []).map((v): Box => ({ ...place(v), vertex: v }))
  const links = (graph.edges ?? []).map((e) => {
    const points = e.points as unknown as number[][]
    const ys = points.map((p) => p[1] as number)
    const d = points.map((p, i) => `${i ? 'L' : 'M'}${p[0]} ${p[1]}`).join('')
    return { ...ends(e, boxes), d, top: Math.min(...ys), bottom: Math.max(...ys) }
  })
  return { width: graph.width, height: graph.height, boxes, links }
}

const place = (v: Vertex) => ({ id: v.id, x: v.x, y: v.y, width: v.width, height: v.height })
const ends = (e: Edge, boxes: Box[]) => ({ kind: e.kind, from: boxes[e.from] as Box, to: boxes[e.to] as Box })

/** fold is the picture with groups. shown are nodes that are in none of them, by id; opened are groups that are not. */
export function fold(graph: Graph, status: StatusOf, shown: Set<string>, opened: Set<string>): Picture {
  const vertices = graph.vertices ?? []
  const unit = units(graph, status, shown)
  const byUnit = new Map<string, number[]>()
  vertices.forEach((_, i) => {
    const key = unit[i] as string
    byUnit.set(key, [...(byUnit.get(key) ?? []), i])
  })
  for (const [key, members] of [...byUnit]) {
    if (members.filter((i) => !isFile(vertices[i])).length > 1 && !opened.has(key)) continue
    byUnit.delete(key)
    for (const i of members) {
      unit[i] = vertices[i]?.id as string
      byUnit.set(unit[i] as string, [i])
    }
  }
  const items = [...byUnit].map(([id, members]) =>
    item(
      id,
      members.map((i) => vertices[i] as Vertex),
      status,
    ),
  )
  const at = new Map(items.map((it, i) => [it.box.id, i]))
  const links = new Map<string, [number, number, string]>()
  for (const e of graph.edges ?? []) {
    const from = at.get(unit[e.from] as string) as number
    const to = at.get(unit[e.to] as string) as number
    const key = `${from} ${to}`
    if (from !== to && (e.kind === 'rows' || !links.has(key))) links.set(key, [from, to, e.kind])
  }
  return arrange(items, [...links.values()])
}

const isFile = (v: Vertex | undefined) => v?.kind === 'file'

/** units says of each vertex which group it is in, or its id. Files are where their node is. */
function units(graph: Graph, status: StatusOf, shown: Set<string>): string[] {
  const vertices = graph.vertices ?? []
  const edges = graph.edges ?? []
  let room = foldFrom
  const kept = vertices.map((v) => !isFile(v) && (shown.has(v.id) || (isOpen(status(v)) && room-- > 0)))
  const word = vertices.map((v) => look(status(v) ?? 'pending').word)
  const tag = vertices.map((v) => v.tags?.[0] ?? '')
  // Neighbours without a tag that are alike belong together.
  const root = vertices.map((_, i) => i)
  const find = (i: number): number => {
    while (root[i] !== i) i = root[i] = root[root[i] as number] as number
    return i
  }
  const alike = (i: number, j: number) =>
    !kept[i] && !kept[j] && !tag[i] && !tag[j] && word[i] === word[j] && !isFile(vertices[i]) && !isFile(vertices[j])
  for (const e of edges) if (alike(e.from, e.to)) root[find(e.from)] = find(e.to)
  // So do those that have the same neighbours in the picture, as many beside each other have.
  const beside = new Map<number, Set<string>>()
  const note = (i: number, text: string) => beside.set(find(i), (beside.get(find(i)) ?? new Set()).add(text))
  for (const e of edges) {
    if (kept[e.to]) note(e.from, `>${e.to}`)
    if (kept[e.from]) note(e.to, `<${e.from}`)
    // What tags read and what reads them is not one group: it would be above and below them.
    if (!kept[e.to] && !kept[e.from]) {
      if (tag[e.to] && !tag[e.from]) note(e.from, '>#')
      if (tag[e.from] && !tag[e.to]) note(e.to, '<#')
    }
  }
  const out = vertices.map((v, i) => {
    if (kept[i]) return v.id
    if (tag[i]) return `${word[i]} #${tag[i]}`
    return `${word[i]} ${[...(beside.get(find(i)) ?? [])].sort().join(' ')}`
  })
  for (const e of edges) {
    for (const [file, node] of [
      [e.from, e.to],
      [e.to, e.from],
    ] as [number, number][])
      if (isFile(vertices[file])) out[file] = kept[node] ? (vertices[file]?.id as string) : (out[node] as string)
  }
  return out
}

/** Item is a box whose place is not known yet. */
interface Item {
  box: Box
  x: number
  y: number
}

function item(id: string, members: Vertex[], status: StatusOf): Item {
  const mean = (of: (v: Vertex) => number) => members.reduce((sum, v) => sum + of(v), 0) / members.length
  const [x, y] = [mean((v) => v.x + v.width / 2), mean((v) => v.y)]
  const first = members.find((v) => !isFile(v)) ?? (members[0] as Vertex)
  if (members.length === 1) return { box: { ...place(first), vertex: first }, x, y }
  const nodes = members.filter((v) => !isFile(v))
  const tag = nodes.every((v) => v.tags?.[0] === first.tags?.[0]) ? (first.tags?.[0] ?? '') : ''
  const group = { word: look(status(first) ?? 'pending').word, tag, nodes }
  return { box: { id, x: 0, y: 0, width: 190, height: 52, group }, x, y }
}

/** arrange puts items into ranks, data flowing down, each in the order of the whole picture. */
function arrange(items: Item[], links: [number, number, string][]): Picture {
  const rank = ranks(items, links)
  const rows = new Map<number, Item[]>()
  items.forEach((it, i) => {
    const r = rank[i] as number
    rows.set(r, [...(rows.get(r) ?? []), it])
  })
  const lines = [...rows.keys()]
    .sort((a, b) => a - b)
    .flatMap((r) => wrapped((rows.get(r) as Item[]).sort((a, b) => a.x - b.x)))
  const widthOf = (line: Item[]) => line.reduce((w, it) => w + it.box.width + gapX, -gapX)
  const width = Math.max(0, ...lines.map(widthOf)) + 2 * margin
  let y = margin
  for (const line of lines) {
    let x = (width - widthOf(line)) / 2
    for (const { box } of line) {
      box.x = x
      box.y = y
      x += box.width + gapX
    }
    y += Math.max(...line.map((it) => it.box.height)) + gapY
  }
  const out = links.map(([from, to, kind]) => curve(items[from]?.box as Box, items[to]?.box as Box, kind))
  return { width, height: y - gapY + margin, boxes: items.map((it) => it.box), links: out }
}

function wrapped(rank: Item[]): Item[][] {
  const lines: Item[][] = []
  let width = Number.POSITIVE_INFINITY
  for (const it of rank) {
    if (width + it.box.width > widthMax) {
      lines.push([])
      width = 0
    }
    lines.at(-1)?.push(it)
    width += it.box.width + gapX
  }
  return lines
}

/** ranks puts each item behind what it reads. Groups may read each other: the upper one then comes first. */
function ranks(items: Item[], links: [number, number, string][]): number[] {
  const out: number[][] = items.map(() => [])
  const waits = items.map(() => 0)
  for (const [from, to] of links) {
    out[from]?.push(to)
    waits[to] = (waits[to] as number) + 1
  }
  const rank = items.map(() => 0)
  const placed = items.map(() => false)
  const ready = items.map((_, i) => i).filter((i) => waits[i] === 0)
  const byPlace = items.map((_, i) => i).sort((a, b) => (items[a]?.y as number) - (items[b]?.y as number))
  for (let at = 0; ; ) {
    let i = ready.pop()
    if (i === undefined) {
      while (placed[byPlace[at] as number]) at++
      i = byPlace[at]
      if (i === undefined) break
    }
    if (placed[i]) continue
    placed[i] = true
    for (const to of out[i] ?? []) {
      if (placed[to]) continue
      rank[to] = Math.max(rank[to] as number, (rank[i] as number) + 1)
      waits[to] = (waits[to] as number) - 1
      if (waits[to] === 0) ready.push(to)
    }
  }
  // What reads nothing is right before its first reader.
  const read = new Set(links.map(([, to]) => to))
  out.forEach((to, i) => {
    if (to.length && !read.has(i)) rank[i] = Math.max(0, Math.min(...to.map((t) => rank[t] as number)) - 1)
  })
  return rank
}

function curve(from: Box, to: Box, kind: string): Link {
  const [x1, y1, x2, y2] = [from.x + from.width / 2, from.y + from.height, to.x + to.width / 2, to.y]
  const bend = Math.max(20, Math.abs(y2 - y1) / 2)
  const d = `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`
  return { kind, from, to, d, top: Math.min(y1, y2), bottom: Math.max(y1, y2) }
}

/** found are the nodes that a text or a tag names, by id. */
export function found(vertices: Vertex[], text: string, tag: string): Set<string> {
  const wanted = text.trim().toLowerCase()
  if (!wanted && !tag) return new Set()
  const has = (v: Vertex) =>
    [v.title, v.note ?? '', ...(v.tags ?? []), ...(v.lines ?? [])].some((t) => t.toLowerCase().includes(wanted))
  return new Set(
    vertices.filter((v) => !isFile(v) && (!tag || v.tags?.includes(tag)) && (!wanted || has(v))).map((v) => v.id),
  )
}
