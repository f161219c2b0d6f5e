// Text of others is shown as it is: nothing of it becomes part of a page.
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { hostile, hostileRuns, State } from './state.mjs'

let state, server, browser, runs

before(async () => {
  state = new State()
  runs = await hostileRuns(state)
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

test('hostile text is text, on every page', async () => {
  const tab = await Tab.open(browser, server)
  const { page } = tab
  const begins = hostile.slice(0, 18) // before the first quote, which messages escape
  const failed = `/w/main/runs/${runs.failed}`
  for (const [path, shows] of [
    ['/', begins],
    ['/w/main', '<b>'],
    ['/w/main?tab=matrix', '<b>'],
    ['/w/main?tab=audit', 'create'],
    [failed, begins],
    [`${failed}/nodes/read`, begins],
    [`/w/main/gates/${runs.waiting}/names`, begins],
    [`/w/main/tables/names?run=${runs.waiting}&column=name`, begins],
    [`/w/main/tables/${encodeURIComponent(hostile)}?run=1`, begins],
    [`/w/${encodeURIComponent(hostile)}`, begins],
  ]) {
    await page.goto(server.url + path)
    await page.getByText(shows).filter({ visible: true }).first().waitFor()
  }
  await page.goto(server.url + failed)
  await page.getByText('What happened').click()
  await page.getByText('Run info').click()
  await page.getByText(begins).filter({ visible: true }).last().waitFor()
  await tab.close()
})
