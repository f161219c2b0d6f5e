// The pages that are loaded when somebody comes to them. Now, a workspace and a run are there from the start.
import type { Component } from 'svelte'
import { live } from './live.svelte'

/** Page loads a page that takes certain properties. */
// biome-ignore lint/suspicious/noExplicitAny: the properties of a component are those that it says
export type Page<P extends Record<string, any>> = () => Promise<{ default: Component<P> }>

export const pages = {
  gate: () => import('../pages/Gate.svelte'),
  node: () => import('../pages/Node.svelte'),
  table: () => import('../pages/Table.svelte'),
  start: () => import('../pages/Start.svelte'),
  timeline: () => import('../pages/Timeline.svelte'),
  trace: () => import('../pages/Trace.svelte'),
  diff: () => import('../pages/Diff.svelte'),
  sql: () => import('../pages/Sql.svelte'),
  dev: () => import('../pages/Dev.svelte'),
  script: () => import('../pages/Script.svelte'),
}

const quietMS = 3000 // after which what is likely to be asked for next is loaded

/** ahead loads the pages that are likely to be asked for next, until the returned function is called. */
export function ahead(): () => void {
  const timer = setTimeout(async () => {
    // One after the other, and not while the server is away: nobody is told of what nobody has asked for.
    for (const page of [pages.node, pages.gate, pages.table]) if (live.connection === 'live') await page()
  }, quietMS)
  return () => clearTimeout(timer)
}
