import { expect, test } from 'vitest'
import { bytes, duration, plain, plural, ranges, scriptName, short } from './format'

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [1500, '1.5 s'],
  [59_400, '59 s'],
  [60_000, '1 min'],
  [119_700, '2 min'],
  [3_599_900, '1 h'],
  [5_400_000, '1 h 30 min'],
  [90_000_000, '1 d 1 h'],
])('a duration of %d ms', (ms, want) => expect(duration(ms)).toBe(want))

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [20 * 1024 * 1024, '20 MiB'],
])('an amount of %d bytes', (n, want) => expect(bytes(n)).toBe(want))

test('words', () => {
  expect(plural(1, 'row')).toBe('1 row')
  expect(plural(48210, 'row')).toBe('48,210 rows')
  expect(scriptName('/jobs/a/orders.yaml')).toBe('orders')
  expect(short('sha256:4ec47e160be2')).toBe('4ec47e')
  expect(plain('{{do runs}} lists them')).toBe('runs lists them')
})

test('ranges are named from one to another', () => {
  const some: [number, number][] = [[0, 3], [7, 7], [9, 1200]] // biome-ignore format: short
  expect(ranges(some)).toBe('0–3, 7, 9–1,200')
  expect(ranges(some, 2)).toBe('0–3, 7 …')
})
