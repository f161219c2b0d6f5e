// What needs people, of several workspaces.
import type { Need } from '../api/schema'

const rank = (n: Need) => (n.taken ? 2 : n.until ? 0 : 1)

/** inOrder puts needs of several workspaces in the order in which the server has those of one. */
export function inOrder(a: Need, b: Need): number {
  const by = rank(a) - rank(b)
  if (by) return by
  if (a.until && b.until) return Date.parse(a.until) - Date.parse(b.until) || (a.run ?? 0) - (b.run ?? 0)
  return Date.parse(b.since) - Date.parse(a.since) || (a.run ?? 0) - (b.run ?? 0)
}
