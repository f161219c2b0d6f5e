import { expect, test } from 'vitest'
import type { Graph, Vertex } from '../api/schema'
import { fold, found, isOpen, whole } from './dag'

const graph = (nodes: number, reads: (i: number) => number[], tags: (i: number) => string[] = () => []): Graph => ({
  title: 'x',
  width: 100,
  height: 100,
  roots: [],
  vertices: Array.from({ length: nodes }, (_, i) => ({
    id: `n:${i}`,
    kind: 'step',
    node: `${i}`,
    title: `node ${i}`,
    lines: ['sql'],
    tags: tags(i),
    x: i,
    y: i * 60,
    width: 90,
    height: 40,
    root: 0,
  })),
  edges: Array.from({ length: nodes }, (_, i) =>
    reads(i).map((from) => ({ from, to: i, kind: 'rows', points: [] })),
  ).flat(),
})
const none = new Set<string>()
const chain = (i: number) => (i ? [i - 1] : [])
const failedAt = (at: number) => (v: Vertex) =>
  Number(v.node) < at ? 'succeeded' : Number(v.node) === at ? 'failed' : 'pending'

test('a deep picture is what is open between what is done and what is not begun', () => {
  const p = fold(graph(1000, chain), failedAt(500), none, none)
  expect(p.boxes.map((b) => b.vertex?.title ?? `${b.group?.nodes.length} ${b.group?.word}`).sort()).toEqual([
    '499 not begun',
    '500 done',
    'node 500',
  ])
  const y = (id: string) => p.boxes.find((b) => (b.vertex?.id ?? b.group?.word) === id)?.y as number
  expect(y('done')).toBeLessThan(y('n:500'))
  expect(y('n:500')).toBeLessThan(y('not begun'))
  expect(p.links).toHaveLength(2)
})

test('a wide picture is one group, and unfolds into lines that are no wider than a screen', () => {
  const wide = graph(1000, () => [])
  const p = fold(wide, () => 'pending', none, none)
  expect(p.boxes).toHaveLength(1)
  const open = fold(wide, () => 'pending', none, new Set([p.boxes[0]?.id as string]))
  expect(open.boxes).toHaveLength(1000)
  expect(open.width).toBeLessThan(1500)
  const places = new Set(open.boxes.map((b) => `${b.x} ${b.y}`))
  expect(places.size).toBe(1000)
})

test('nodes of a tag are a group, even if groups read each other', () => {
  const tagged = graph(300, chain, (i) => [i % 2 ? 'odd' : 'even'])
  const p = fold(tagged, () => 'succeeded', none, none)
  expect(p.boxes.map((b) => b.group?.tag).sort()).toEqual(['even', 'odd'])
  expect(new Set(p.boxes.map((b) => b.y)).size).toBe(2)
})

test('what groups of tags read is above them, and what reads them below', () => {
  const reads = (i: number) => (i === 0 ? [] : i <= 290 ? [0] : [i - 290])
  const p = fold(
    graph(300, reads, (i) => (i && i <= 290 ? [`t${i % 3}`] : [])),
    () => 'succeeded',
    none,
    none,
  )
  expect(p.boxes.map((b) => b.vertex?.title ?? b.group?.nodes.length).sort()).toEqual([9, 96, 97, 97, 'node 0'])
  expect(p.links.every((l) => l.from.y + l.from.height <= l.to.y)).toBe(true)
})

test('what is shown is out of its group, and so many that have failed are not all shown', () => {
  expect(fold(graph(1000, chain), failedAt(2000), new Set(['n:7']), none).boxes.some((b) => b.id === 'n:7')).toBe(true)
  expect(
    fold(
      graph(1000, () => []),
      () => 'failed',
      none,
      none,
    ).boxes,
  ).toHaveLength(151)
})

test('files are where their node is', () => {
  const g = graph(3, chain)
  ;(g.vertices as Vertex[]).push({ ...(g.vertices?.[0] as Vertex), id: 'w:1', kind: 'file', title: 'a.csv' })
  g.edges?.push({ from: 1, to: 3, kind: 'rows', points: [] })
  expect(fold(g, failedAt(1), none, none).boxes.map((b) => b.id)).toContain('w:1')
  expect(fold(g, failedAt(2), none, none).boxes.map((b) => b.id)).not.toContain('w:1')
})

test('nodes are found by name and tag', () => {
  const all = graph(30, chain, (i) => (i > 20 ? ['late'] : [])).vertices as Vertex[]
  expect([...found(all, 'NODE 29', '')]).toEqual(['n:29'])
  expect(found(all, '', 'late').size).toBe(9)
  expect(found(all, '', '').size).toBe(0)
  expect(whole(graph(2, () => [])).boxes).toHaveLength(2)
  expect(['running', 'waiting', 'failed', 'paused'].every(isOpen)).toBe(true)
  expect(['succeeded', 'pending', 'stopped', undefined].some(isOpen)).toBe(false)
})
