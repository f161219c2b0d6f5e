import { expect, test } from 'vitest'
import { latest } from './memory'
import { command } from './shell'
import { bodyOf, commandOf, formOf, missing, queryOf, type StartForm } from './start'

const form: StartForm = {
  script: "day's/orders.yaml",
  note: 'again & again',
  start: ['a', 'b'],
  fresh: true,
  params: [
    { name: 'city', value: 'Zürich=1&2' },
    { name: 'api_token', value: 's3' },
    { name: '', value: 'left over' },
  ],
  deadline: '06:30',
  maxElapsed: '2h',
  maxCost: '12.50',
  priority: 'high',
}

test('a form is what its address says, without values that may be secrets', () => {
  const query = new URLSearchParams()
  for (const [k, v] of Object.entries(queryOf(form))) if (v) query.set(k, v)
  expect(query.toString()).not.toContain('s3')
  expect(formOf(query)).toEqual({ ...form, params: [form.params[0], { name: 'api_token', value: '' }] })
})

test('a request has what was filled in', () => {
  expect(bodyOf(form)).toMatchObject({ max_elapsed: '2h', max_cost: '12.50' })
  expect(bodyOf(form).params).toEqual({ city: 'Zürich=1&2', api_token: 's3' })
  const empty = {
    ...form,
    note: '',
    start: [],
    fresh: false,
    params: [],
    deadline: '',
    maxElapsed: ' ',
    maxCost: '',
    priority: '',
  }
  expect(bodyOf(empty)).toEqual({ script: form.script })
})

test('the command quotes what a shell would take apart and has no secret', () => {
  const said = commandOf(form, 'main')
  expect(said).toContain(`run 'day'\\''s/orders.yaml' --start a,b --param 'city=Zürich=1&2'`)
  expect(said).toContain('--max-elapsed 2h --max-cost 12.50')
  expect(said).not.toContain('s3')
  expect(command('a b', 7, '$x', '')).toBe("'a b' 7 '$x' ''")
})

test('missing parameters are those that hints propose to set', () => {
  const hint = 'write <city>; give one with {{set params=FILE}}, or the value with {{set param=city=VALUE}}'
  expect(missing([hint, undefined, hint, '{{set param=day=VALUE}}'])).toEqual(['city', 'day'])
})

test('the latest comes first and once', () => {
  expect(latest(['a', 'b', 'c'], 'b', 3)).toEqual(['b', 'a', 'c'])
  expect(latest(['a', 'b'], 'c', 2)).toEqual(['c', 'a'])
})
