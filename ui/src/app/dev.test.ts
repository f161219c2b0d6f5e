import { expect, test } from 'vitest'
import type { HistoryRun, RunPlanned } from '../api/schema'
import { good, planned, topicOf } from './dev'

const run = (n: number, status: string) => ({ run: n, status }) as HistoryRun

test('the tables of the last good run stay in view', () => {
  expect(good([])).toBeUndefined()
  expect(good([run(3, 'running'), run(2, 'failed'), run(1, 'complete')])?.run).toBe(1)
  expect(good([run(2, 'complete'), run(1, 'complete')])?.run).toBe(2)
  expect(good([run(3, 'invalidated'), run(2, 'complete')])?.run).toBe(2)
  expect(good([run(2, 'failed'), run(1, 'stopped')])?.run).toBe(2)
})

test('what a run would do is a sentence', () => {
  const plan = (...reused: boolean[]) =>
    ({
      nodes: reused.map((r, i) => ({ node: `n${i}`, ...(r ? { reused_from: { run: 1, node: 'n' } } : {}) })),
    }) as RunPlanned
  expect(planned(plan(true, true))).toContain('Nothing has changed')
  expect(planned(plan(false))).toBe('1 node is computed.')
  expect(planned(plan(false, false, true))).toBe('2 nodes are computed, and 1 is taken over from earlier runs.')
})

test('topics have names of scripts in one piece', () => {
  expect(topicOf('main', 'a/b,c.yaml')).toBe('main/script:a%2Fb%2Cc.yaml')
})
