import { describe, expect, it } from 'vitest'
import { filled } from './filled'

/** pages have nothing before the one at `full`, and end behind `last`. */
function server(full: number, last: number) {
  const asked: string[] = []
  const ask = async (cursor: string) => {
    asked.push(cursor)
    const n = Number(cursor || 0)
    return { rows: n === full ? [n] : [], ...(n < last ? { next: `${n + 1}` } : {}) }
  }
  return { asked, ask }
}
const has = (page: { rows: number[] }) => page.rows.length > 0

describe('filled', () => {
  it('asks until a page has something', async () => {
    const { asked, ask } = server(2, 9)
    expect(await filled(ask, '', has, () => true)).toEqual({ rows: [2], next: '3' })
    expect(asked).toEqual(['', '1', '2'])
  })
  it('ends with the last page', async () => {
    expect(await filled(server(-1, 3).ask, '', has, () => true)).toEqual({ rows: [] })
  })
  it('says where to go on once it has asked often', async () => {
    const { asked, ask } = server(50, 90)
    expect(await filled(ask, '', has, () => true)).toEqual({ rows: [], next: '20' })
    expect(asked.length).toBe(20)
  })
  it('asks no more once nobody waits', async () => {
    const { asked, ask } = server(5, 9)
    await filled(ask, '', has, () => asked.length < 2)
    expect(asked.length).toBe(2)
  })
})
