import { expect, test } from 'vitest'
import { choiceOf, drawn, keys, queryOf, toggled } from './eventlist'

test('the address says which events are asked for', () => {
  const c = choiceOf(
    new URLSearchParams('kind=batch_ended,none,node_moved&not=node_heard&of=load&says=a b&least=usual'),
  )
  expect(c).toEqual({
    kind: ['node_moved', 'batch_ended'],
    not: ['node_heard'],
    node: 'load',
    text: 'a b',
    least: 'usual',
  })
  expect(queryOf(c)).toEqual(c)
  expect(queryOf(choiceOf(new URLSearchParams('least=wrong')))).toEqual({ least: 'concern' })
})

test('a kind is chosen, or left out, or neither', () => {
  const none = choiceOf(new URLSearchParams())
  expect(toggled(none, 'kind', 'batch_claimed')).toEqual({ kind: 'batch_claimed', not: '', least: 'noise' })
  expect(toggled(none, 'not', 'batch_ended')).toEqual({ not: 'batch_ended', kind: '' })
  const some = choiceOf(new URLSearchParams(`${keys.kind}=batch_ended&${keys.not}=node_moved`))
  expect(toggled(some, 'kind', 'node_moved')).toEqual({ kind: 'node_moved,batch_ended', not: '', least: 'noise' })
  expect(toggled(some, 'kind', 'batch_ended')).toEqual({ kind: '', not: 'node_moved' })
  expect(toggled(some, 'not', 'batch_ended')).toEqual({ kind: '', not: 'node_moved,batch_ended' })
})

test('only what is in view is drawn', () => {
  expect(drawn(0, 32, 0, 400)).toEqual({ from: 0, to: 0 })
  expect(drawn(5, 32, 0, 400)).toEqual({ from: 0, to: 5 })
  expect(drawn(50_000, 32, 0, 400)).toEqual({ from: 0, to: 23 })
  expect(drawn(50_000, 32, 32_000, 400)).toEqual({ from: 990, to: 1023 })
  expect(drawn(50_000, 32, 50_000 * 32 - 400, 400)).toEqual({ from: 49_977, to: 50_000 })
  expect(drawn(20, 32, 1_000_000, 320)).toEqual({ from: 0, to: 20 }) // the list has become shorter
})
