import { expect, test } from 'vitest'
import type { Need } from '../api/schema'
import { inOrder } from './needs'

const need = (run: number, more: Partial<Need> = {}) =>
  ({ kind: 'failure', run, script: '', text: '', since: '2026-01-01T00:00:00Z', ...more }) as Need

test('what is too late soonest comes first, then the latest, and what is taken last', () => {
  const taken = { taken: { actor: 'ann' } } as Partial<Need>
  const all = [
    need(1, { since: '2026-01-02T00:00:00Z' }),
    need(2, { ...taken, until: '2025-01-01T00:00:00Z' }),
    need(3, { since: '2026-01-03T00:00:00Z' }),
    need(4, { until: '2026-01-05T00:00:00Z' }),
    // the same instant in another zone and without fractions
    need(5, { until: '2026-01-05T00:30:00+01:00' }),
    need(6, { since: '2026-01-03T00:00:00.5Z' }),
  ]
  expect(all.sort(inOrder).map((n) => n.run)).toEqual([5, 4, 6, 3, 1, 2])
})
