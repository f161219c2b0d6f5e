// What a page says while its server, its session or its grants change.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { finishedRun, State, until, waitingRuns, waits } from './state.mjs'

let state, server, browser, waiting

before(async () => {
  state = new State()
  await finishedRun(state)
  ;({ waiting } = await waitingRuns(state))
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

const connection = (page) => page.getByRole('banner').getByRole('status')

test('a run that begins elsewhere is on the page', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  await connection(tab.page).getByText('Live').waitFor()
  const run = await state.run('orders.yaml')
  await tab.page.getByRole('link', { name: `orders #${run}` }).waitFor()
  await tab.close()
})

test('nothing moves under the pointer', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  await connection(tab.page).getByText('Live').waitFor()
  const first = tab.page.getByRole('row').nth(1)
  const before = await first.textContent()
  await first.hover()
  const run = await state.run('orders.yaml')
  await tab.page.getByRole('button', { name: '1 new' }).waitFor()
  assert.equal(await first.textContent(), before)
  await tab.page.getByRole('button', { name: '1 new' }).click()
  await tab.page.getByRole('link', { name: `orders #${run}` }).waitFor()
  await tab.close()
})

test('a part of the pages that cannot be had is said, and had by loading again', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  await tab.context.route('**/chunks/*', (route) => route.abort())
  await tab.page.getByRole('link', { name: 'Query' }).click()
  await tab.page.getByRole('alert').getByText('Not all of the page can be had').waitFor()
  assert.equal(await tab.page.getByText('Loading …').count(), 0)
  await tab.accessible()
  await tab.context.unroute('**/chunks/*')
  await tab.page.getByRole('button', { name: 'Load again' }).click()
  await tab.page.getByRole('heading', { name: 'Query' }).waitFor()
  assert.equal(await tab.page.getByRole('alert').count(), 0)
  await tab.close()
})

test('many tabs are live over HTTP/1.1', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  const all = [tab.page]
  while (all.length < 20) {
    const page = await tab.another()
    await page.goto(`${server.url}/w/main`)
    all.push(page)
  }
  const run = await state.run('orders.yaml')
  for (const page of all) await page.getByRole('link', { name: `orders #${run}` }).waitFor()
  await all[0].close() // whoever takes its place goes on
  all.shift()
  const next = await state.run('orders.yaml')
  for (const page of all) await page.getByRole('link', { name: `orders #${next}` }).waitFor()
  await tab.close()
})

test('a tab at what is not there does not silence the others', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  const lost = await tab.another()
  await lost.goto(`${server.url}/w/main/runs/99999`)
  await lost.getByText('has no run 99999').first().waitFor()
  const run = await state.run('orders.yaml')
  await tab.page.getByRole('link', { name: `orders #${run}` }).waitFor()
  await connection(tab.page).getByText('Live').waitFor()
  await tab.close()
})

test('events are read once', async () => {
  const tab = await Tab.open(browser, server, '/w/main/runs/1')
  let asked = 0
  tab.page.on('request', (r) => {
    if (r.url().includes('/events')) asked++
  })
  await tab.page.getByText('What happened').click()
  await tab.page.getByRole('cell', { name: 'run completed: complete' }).waitFor()
  await tab.page.getByText('Run info').click()
  await tab.page.reload() // by then, whatever would be asked again has been
  await tab.page.getByRole('heading', { level: 1 }).waitFor()
  assert.equal(asked, 1)
  await tab.close()
})

test('a server that is killed is said, and what it is when it is back', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  await connection(tab.page).getByText('Live').waitFor()
  await server.kill()
  await connection(tab.page).getByText('Reconnecting').waitFor()
  await tab.page.getByRole('row').nth(1).waitFor() // what was known stays
  server = await server.again()
  await connection(tab.page).getByText('Live').waitFor()
  const run = await state.run('orders.yaml')
  await tab.page.getByRole('link', { name: `orders #${run}` }).waitFor()
  tab.forgive()
  await tab.close()
})

test('a session that has ended in a form keeps the form', async () => {
  const user = await server.user('sales', { workspace: 'main', role: 'approver', gate_roles: ['sales'] })
  const tab = await Tab.open(browser, server, `/w/main/gates/${waiting}/prices`, { as: user })
  const { page } = tab
  await page.getByLabel('Comment').fill('looked at all of it')
  await page.getByRole('button', { name: /^Approve/, disabled: false }).waitFor() // all of it is there
  const cookies = await tab.context.cookies()
  await tab.context.clearCookies()
  await page.getByRole('button', { name: /^Approve/ }).click()
  await page.getByRole('heading', { name: 'Sign in again' }).waitFor()
  await tab.accessible()
  assert.equal(await page.getByLabel('Comment').inputValue(), 'looked at all of it')
  assert.ok(cookies.length)
  await page.getByLabel('Name').fill(user.name)
  await page.getByLabel('Password').fill(user.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Sign in again' }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: /^Approve/ }).click()
  await page.locator('.said').getByText('approved').first().waitFor()
  await tab.close()
})

test('a grant that is withdrawn is said', async () => {
  const user = await server.user('gone', { workspace: 'main', role: 'reader' })
  const tab = await Tab.open(browser, server, '/w/main/tables/sales?run=1', { as: user })
  await tab.page.getByText('of 1,200 rows').first().waitFor()
  await server.user('gone')
  await until(async () => {
    await tab.page
      .getByRole('button', { name: 'Next' })
      .click({ timeout: 1000 })
      .catch(() => {})
    return (await tab.page.getByRole('alert').count()) > 0
  })
  await tab.close()
})

test('an order to a run is pending until its event comes', async () => {
  const run = await state.run(join(state.dir, 'prices.yaml'), waits)
  const tab = await Tab.open(browser, server, `/w/main/runs/${run}`)
  const { page } = tab
  await connection(page).getByText('Live').waitFor()
  // The answer comes, and the event does not: nothing is ordered.
  let order
  await page.route('**/orders', (route) => {
    const body = route.request().postDataJSON()
    if (body.dry_run) return route.continue()
    order = body
    return route.fulfill({ status: 200, contentType: 'application/json', body: '{}' })
  })
  await page.getByRole('button', { name: 'Stop…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('batches are under way').waitFor()
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  const pending = page.getByRole('button', { name: 'Stop: pending …' })
  await pending.waitFor()
  await tab.accessible()
  await tab.screenshot('order-pending', { width: 1280 })
  await server.request('POST', `/v1/workspaces/main/runs/${run}/orders`, order)
  await pending.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Resume…' }).waitFor()
  await tab.close()
})
