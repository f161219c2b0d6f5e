import { expect, test } from 'vitest'
import type { BulkRun } from '../api/schema'
import { commandsOf, effectOf, inParts, type Line, takes, tokensOf, touched } from './bulk'

const run = (n: number, more: object): Line =>
  ({ run: n, workspace: 'main', status: 'failed', script: 'a.yaml', created: '', done: false, ...more }) as Line
const step = { batches: [], batches_total: 12, of: '', planned_again: false, why: 'failed' }
const planned = { event: '', workspace: 'main', run: 7, new_run: false }
const retry = run(7, {
  would: {
    dry_run: true,
    token: 't7',
    planned: {
      ...planned,
      tasks: [
        { ...step, node: 'read', count: 1, rows: 10, elapsed_ns: 2e6 },
        { ...step, node: 'write', count: 12, rows: 5, elapsed_ns: 1e6 },
      ],
    },
  },
})

test('a retry says what is done again, with rows and time of last time', () => {
  expect(effectOf(retry)).toEqual({
    ...{ text: 'read (1 of 12), write (12 of 12)', rows: 15, ms: 3 },
    ...{ touches: [], none: false },
  })
  const fresh = { ...planned, new_run: true, changed: [{ what: 'input', name: 'a.csv', how: 'has changed' }] }
  const nodes = [
    { node: 'read', computed: 'changed', rows: 3, elapsed_ns: 1e6 },
    { node: 'other', reused_from: { workspace: 'main', run: 1, node: 'other' } },
  ]
  expect(effectOf(run(8, { would: { dry_run: true, planned: { ...fresh, nodes } } }))?.text).toBe(
    'a new run, because of input a.csv; computes read',
  )
})

test('an order that changes nothing, or is refused, or is not known yet, is not given', () => {
  const stop = (status: string) =>
    run(1, { would: { dry_run: true, would: { before: 'complete', status, in_flight: 2, left: [] } } })
  expect(takes(retry)).toBe(true)
  expect(takes(stop('stopped'))).toBe(true)
  expect(takes(stop('complete'))).toBe(false)
  expect(takes({ ...retry, problem: { detail: 'no' } } as unknown as BulkRun)).toBe(false)
  expect(takes(run(2, {}))).toBe(false)
})

test('what was made from runs is named, but not without end', () => {
  const touches = [3, 3, 4, 5, 6, 7, 8].map((run) => ({ workspace: 'main', run, node: 'n' }))
  expect(touched(touches as never)).toBe('#3, #4, #5, #6, #7 and 1 more')
  const dropped = { bytes: 2048, dry_run: true, nodes: ['a'], run: 1, workspace: 'main', made_from_it: touches }
  expect(effectOf(run(1, { would: { dry_run: true, dropped } }))).toMatchObject({ text: '1 node, 2.0 KiB', touches })
})

test('commands and requests name each run of its workspace', () => {
  const lines = [retry, run(8, {}), { ...run(2, {}), workspace: 'other' }]
  expect(commandsOf('retry', lines, 'ignored')).toEqual([
    'thalweg retry 7 --workspace main',
    'thalweg retry 8 --workspace main',
    'thalweg retry 2 --workspace other',
  ])
  expect(commandsOf('drop', lines, "it's old")).toEqual([
    "thalweg drop 7 8 --reason 'it'\\''s old' --workspace main",
    "thalweg drop 2 --reason 'it'\\''s old' --workspace other",
  ])
  expect(tokensOf(lines)).toEqual({ 7: 't7' })
  expect(inParts(lines, 1).map((p) => p.map((l) => l.run))).toEqual([[7], [8], [2]])
  expect(inParts(lines, 9).map((p) => p.length)).toEqual([2, 1])
})
