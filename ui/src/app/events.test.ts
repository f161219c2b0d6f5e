import { expect, test } from 'vitest'
import { parse } from './events'

test('events are read as the server writes them', () => {
  expect(parse(': listening')).toBeUndefined()
  expect(parse('event: run\nid: main/7:1\ndata: {"a":":"}')).toEqual({ kind: 'run', id: 'main/7:1', data: '{"a":":"}' })
  expect(parse('data: a\ndata: b')).toEqual({ kind: 'message', id: '', data: 'a\nb' })
})
