// Pages over a network that takes seconds for each answer.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { failedRun, repairRetail, State, waitingRuns } from './state.mjs'

let state, server, browser, failed, waiting

before(async () => {
  state = new State()
  failed = await failedRun(state)
  ;({ waiting } = await waitingRuns(state))
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

// slow opens a path, and makes the network slow for all that follows. It also counts what is ordered.
async function slow(path, shows) {
  const tab = await Tab.open(browser, server, path)
  await tab.page.getByText(shows).first().waitFor()
  const network = await tab.context.newCDPSession(tab.page)
  await network.send('Network.enable')
  await network.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 1500,
    downloadThroughput: 50_000,
    uploadThroughput: 20_000,
  })
  tab.ordered = 0
  tab.page.on('request', (r) => {
    if (r.method() === 'POST' && !r.postDataJSON()?.dry_run) tab.ordered++
  })
  return tab
}

test('a page says that it loads, and comes', async () => {
  const tab = await slow('/', '2 things need you')
  await tab.page
    .getByRole('link', { name: `retail #${failed}` })
    .first()
    .click()
  await tab.page.getByRole('status').getByText('Loading …').waitFor()
  await tab.page.getByText('nothing is lost').waitFor()
  await tab.page.getByText('retail_2.csv:203').first().waitFor()
  await tab.close()
})

test('an order is given once, however often its button is pressed', async () => {
  repairRetail(state)
  const tab = await slow(`/w/main/runs/${failed}`, 'nothing is lost')
  const { page } = tab
  await page.getByRole('button', { name: 'Retry…', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Asking what it would do …').waitFor()
  assert.ok(await dialog.getByRole('button', { name: 'Retry', exact: true }).isDisabled(), 'before it is known')
  await dialog.getByText('has changed').first().waitFor()
  await dialog.getByRole('button', { name: 'Retry', exact: true }).dblclick()
  await dialog.getByRole('button', { name: 'Retry …' }).waitFor() // it is pending
  await page.getByText('Complete:').waitFor()
  assert.equal(tab.ordered, 1)
  await tab.close()
})

test('a decision is given once, and is pending until it is there', async () => {
  const tab = await slow(`/w/main/gates/${waiting}/prices`, 'Your decision')
  const { page } = tab
  const approve = page.getByRole('button', { name: /^Approve/ })
  await page.getByText('failing row').first().waitFor()
  await approve.dblclick()
  assert.ok(await approve.isDisabled())
  await page.getByText('approved', { exact: true }).first().waitFor()
  assert.equal(tab.ordered, 1)
  await tab.close()
})

test('a query that takes long can be cancelled meanwhile', async () => {
  const tab = await slow('/w/main/sql', 'One query that only reads')
  const { page } = tab
  await page.getByRole('textbox').first().fill('FROM range(10)')
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('cancelled').first().waitFor()
  await page.getByRole('button', { name: 'Run' }).click()
  await page.getByRole('cell', { name: '9', exact: true }).last().waitFor()
  await tab.close()
})
