// The page of a node: what broke it, who has tried, what is executed, where columns come from.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { failed as endsFailed, failedRun, finishedRun, State } from './state.mjs'

let state, server, browser, complete, failed, alike

before(async () => {
  state = new State()
  complete = await finishedRun(state)
  failed = await failedRun(state)
  for (const [n, price] of [
    [1, 'one'],
    [2, 'two'],
    [3, '3.00'],
  ])
    state.write(`alike_${n}.csv`, `id,price\n1,${price}\n`)
  const script = `
nodes:
  read:
    type: file_table
    r: {urls: ["alike_*.csv"], columns: {id: int, price: decimal2}}
    w: alike
`
  alike = await state.run(state.write('alike.yaml', script), endsFailed)
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

test('the card of a failure has the record, with the value marked', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${failed}/nodes/read`)
  const record = tab.page.locator('.record').first()
  await record.waitFor()
  assert.match(await record.textContent(), /201,.*,12;5,2026-03-06/)
  assert.equal(await record.locator('mark').textContent(), '12;5')
  await tab.page.getByRole('button', { name: 'Take' }).waitFor()
  await tab.close()
})

test('all that has failed for one reason is retried, and named before', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${alike}/nodes/read`)
  const { page } = tab
  await page.getByRole('button', { name: 'Retry all like this…' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('failed for the same reason').waitFor()
  const named = await dialog.getByRole('listitem').first().textContent()
  const answer = await page.request.get(
    `${server.url}/v1/workspaces/main/runs/${alike}/nodes/read/batches?status=failed`,
  )
  const batches = (await answer.json()).map((b) => b.batch)
  assert.ok(batches.length > 0)
  await dialog.getByText(`${batches.length} batch`).first().waitFor()
  assert.match(named, new RegExp(`^read ${batches[0]}`))
  await tab.accessible('[role="dialog"]')
  await dialog.getByRole('button', { name: 'Retry', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  await tab.close()
})

const tabs = () => [
  ['sql', complete, 'sum', /PROJECTION|HASH_GROUP_BY/],
  ['sql', complete, 'read', /READ_CSV/],
  ['attempts', complete, 'read', /1,200 rows written/],
  ['attempts', failed, 'read', /is not a decimal2/],
  ['lineage', complete, 'sum', /sales\.price/],
  ['lineage', complete, 'read', /sales_\*\.csv\.price/],
  ['lineage', complete, 'write', /sums\.shop/],
]

test('each tab is a link, accessible, and fits a phone', async () => {
  for (const width of [1280, 360]) {
    const tab = await Tab.open(browser, server, '/', { width })
    for (const [name, run, node, shows] of tabs()) {
      await tab.page.goto(`${server.url}/w/main/runs/${run}/nodes/${node}?tab=${name}`)
      await tab.page.getByRole('tabpanel').getByText(shows).first().waitFor()
      for (const dark of [false, true]) {
        await tab.screenshot(`node-${name}-${node}-${run}`, { dark, width })
        await tab.accessible()
      }
      await tab.fits()
    }
    await tab.close()
  }
})

test('a node says how its batches stand, one try what it did, and a column where it goes', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${complete}/nodes/read`)
  const { page } = tab
  const stands = page.getByRole('row', { name: /done/ }).filter({ hasText: '100.0 %' })
  await stands.first().waitFor()
  await page.getByText('Deviation').waitFor()
  await tab.screenshot('node-batches', { width: 1280 })
  await page.getByRole('tab', { name: 'Attempts' }).click()
  await page.getByRole('button', { name: 'Try 1 of batch 0' }).click()
  await page.getByText('Committed').waitFor()
  await page
    .getByRole('cell', { name: /slot \d+$/ })
    .first()
    .waitFor()
  await page.goto(`${server.url}/w/main/runs/${complete}/nodes/read?batch=0`)
  await page
    .getByRole('region', { name: 'Batch 0' })
    .getByText(/sales_/)
    .first()
    .waitFor()
  await page.goBack()
  await page.getByRole('tab', { name: 'Lineage' }).click()
  await page.getByRole('link', { name: 'sums.price' }).first().click()
  await page.getByRole('heading', { name: 'sum', level: 1 }).waitFor()
  assert.match(page.url(), /nodes\/sum\?tab=lineage$/)
  await tab.close()
})

test('types are those of scripts on each page, and a profile shows what is not seen', async () => {
  const tab = await Tab.open(browser, server, `/w/main/tables/sales?run=${complete}`)
  const { page } = tab
  const columns = page.getByRole('region', { name: 'Columns' })
  await columns.getByRole('row', { name: /price/ }).getByText('decimal2').waitFor()
  assert.equal(await page.getByText(/VARCHAR|BIGINT|DECIMAL/).count(), 0)
  await columns.getByRole('row', { name: /shop/ }).getByRole('button', { name: 'values' }).click()
  await columns.getByText('U+200B').first().waitFor()
  await tab.close()
})
