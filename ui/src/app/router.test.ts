import { expect, test, vi } from 'vitest'

vi.stubGlobal('location', { href: 'http://127.0.0.1/' })
const { links, placeOf } = await import('./router.svelte')

test.each([
  ['/', 'now', {}],
  ['/w/main', 'workspace', { workspace: 'main' }],
  ['/w/main/runs/7', 'run', { workspace: 'main', run: '7' }],
  [links.node('main', 7, 'a/b c?'), 'node', { workspace: 'main', run: '7', node: 'a/b c?' }],
  ['/w/%E0%A4%A', 'nowhere', {}],
  ['/else', 'nowhere', {}],
])('%s', (path, page, params) => expect(placeOf(path)).toEqual({ page, params }))
