import { expect, test } from 'vitest'
import type { ProgressProgress } from '../api/schema'
import { countedOf, phaseOf } from './progress'

test.each<[ProgressProgress, string]>([
  [{ phase: 'waiting for memory' }, ''],
  [{ phase: 'x', done: 3000, of: 12_500, unit: 'rows', bytes: 2048 }, '3,000 of 12,500 rows, 2.0 KiB'],
  [{ phase: 'x', of: 2, unit: 'nodes' }, '0 of 2 nodes'],
  [{ phase: 'x', done: 1024, of: 3 << 20, unit: 'bytes', bytes: 1024 }, '1.0 KiB of 3.0 MiB'],
  [{ phase: 'x', bytes: 5 }, '5 B'],
])('%o', (p, want) => expect(countedOf(p)).toBe(want))

test('a phase begins a sentence', () => expect(phaseOf({ phase: 'waiting for memory' })).toBe('Waiting for memory'))
