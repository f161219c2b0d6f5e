import { expect, test, vi } from 'vitest'

vi.stubGlobal('location', { href: 'http://127.0.0.1/' })
const { links, numbered, placeOf, referenceOf } = await import('./router.svelte')

test.each([
  ['/', 'now', {}],
  ['/w/main', 'workspace', { workspace: 'main' }],
  ['/w/main/runs/7', 'run', { workspace: 'main', run: '7' }],
  [links.node('main', 7, 'a/b c?'), 'node', { workspace: 'main', run: '7', node: 'a/b c?' }],
  ['/w/%E0%A4%A', 'nowhere', {}],
  ['/else', 'nowhere', {}],
])('%s', (path, page, params) => expect(placeOf(path)).toEqual({ page, params }))

test.each([
  ['/w/main/runs/last~1/nodes/a%2Fb', '?tab=data', 'last~1', '/w/main/runs/7/nodes/a%2Fb?tab=data'],
  ['/w/main/gates/last/ok', '', 'last', '/w/main/gates/7/ok'],
  ['/w/main/tables/t', '', 'last', '/w/main/tables/t?run=7'],
  ['/w/main/tables/t', '?run=latest&sort=a', 'latest', '/w/main/tables/t?run=7&sort=a'],
  ['/w/main/tables/t', '?run=7', undefined, ''],
  ['/w/main/runs/7', '?run=x', undefined, ''],
  ['/w/main', '', undefined, ''],
])('a run is named by its number: %s%s', (path, query, want, to) => {
  const place = placeOf(path)
  const said = new URLSearchParams(query)
  expect(referenceOf(place, said)).toBe(want)
  if (want) expect(numbered(place, said, 7)).toBe(to)
})
