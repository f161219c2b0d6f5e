import { expect, test } from 'vitest'
import { pieces } from './cells'

const written = (cell: string) =>
  pieces(cell)
    .map((p) => (p.odd ? `[${p.text}]` : p.text))
    .join('')

test.each([
  ['Basel', 'Basel'],
  ['', ''],
  ['  ', '[··]'],
  [' a b ', '[·]a b[·]'],
  ['a\nb\r\n', 'a[␤]b[␍][␤]'],
  ['a\u00a0b', 'a[⍽]b'],
  ['ab\u202ecd', 'ab[U+202E]cd'],
  ['\u{e0041}x', '[U+E0041]x'],
  ['😀', '😀'],
  ['\ud800', '[U+D800]'],
])('pieces of %j', (cell, want) => expect(written(cell)).toBe(want))
